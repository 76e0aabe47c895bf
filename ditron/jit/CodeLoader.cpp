//===- CodeLoader.cpp - Compiled host objects into this process ---------------------------------------------------===//
//
// An LLJIT without its compiler half. Linking happens on the calling thread.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/jit/CodeLoader.h"

#include "ditron/sim/AbiSymbols.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/TaskDispatch.h"
#include "llvm/Support/TargetSelect.h"

#include <fmt/format.h>
#include <mutex>

namespace ditron::jit {

struct CodeLoader::Session {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::orc::JITDylib *simulator = nullptr;
  uint64_t nextModule = 0;
};

namespace {

/// The engine's functions by name, at their addresses in this process.
llvm::Error defineSimulator(llvm::orc::LLJIT &jit, llvm::orc::JITDylib &library) {
  llvm::orc::SymbolMap symbols;
  for (const sim::AbiSymbol &symbol : sim::abiSymbols())
    symbols[jit.mangleAndIntern(symbol.name)] = {llvm::orc::ExecutorAddr::fromPtr(symbol.address),
                                                 llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  return library.define(llvm::orc::absoluteSymbols(std::move(symbols)));
}

Status toStatus(llvm::Error error, std::string_view action) {
  return internalError(fmt::format("{}: {}", action, llvm::toString(std::move(error))));
}

} // namespace

CodeLoader::CodeLoader(std::shared_ptr<Session> session) : session(std::move(session)) {}
CodeLoader::~CodeLoader() = default;

Expected<std::unique_ptr<CodeLoader>> CodeLoader::create() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  // The default dispatcher starts threads; the caller's is enough, and may be a fiber.
  llvm::Expected<std::unique_ptr<llvm::orc::SelfExecutorProcessControl>> process =
      llvm::orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>());
  if (!process)
    return toStatus(process.takeError(), "cannot start the linker");
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> jit = llvm::orc::LLJITBuilder()
                                                              .setExecutorProcessControl(std::move(*process))
                                                              .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                                                              .create();
  if (!jit)
    return toStatus(jit.takeError(), "cannot start the linker");
  auto session = std::make_shared<Session>();
  session->jit = std::move(*jit);
  llvm::Expected<llvm::orc::JITDylib &> simulator = session->jit->createJITDylib("simulator");
  if (!simulator)
    return toStatus(simulator.takeError(), "cannot start the linker");
  session->simulator = &*simulator;
  if (llvm::Error error = defineSimulator(*session->jit, *session->simulator))
    return toStatus(std::move(error), "cannot define the simulator's functions");
  return std::unique_ptr<CodeLoader>(new CodeLoader(std::move(session)));
}

Expected<runtime::ModuleImage> CodeLoader::load(const Artifact &artifact) {
  if (artifact.codeKind != ArtifactCode::HostObject) {
    // The driver loads it, and assembles it if need be, once for each GPU that runs it.
    runtime::ModuleImage image;
    image.code = artifact.code;
    return image;
  }
  const std::string action = fmt::format("cannot link kernel '{}'", artifact.kernel);
  llvm::Expected<llvm::orc::JITDylib &> library =
      session->jit->createJITDylib(fmt::format("{}.{}", artifact.kernel, session->nextModule++));
  if (!library)
    return toStatus(library.takeError(), action);
  library->addToLinkOrder(*session->simulator);
  // Unmaps the code when the last owner goes, also when linking fails below.
  std::shared_ptr<void> owner(&*library, [keep = session](llvm::orc::JITDylib *mapped) {
    llvm::consumeError(keep->jit->getExecutionSession().removeJITDylib(*mapped));
  });
  auto object = llvm::MemoryBuffer::getMemBufferCopy(artifact.code, artifact.kernel);
  if (llvm::Error error = session->jit->addObjectFile(*library, std::move(object)))
    return toStatus(std::move(error), action);
  llvm::Expected<llvm::orc::ExecutorAddr> entry = session->jit->lookup(*library, artifact.entrySymbol);
  if (!entry)
    return toStatus(entry.takeError(), action);
  runtime::ModuleImage image;
  image.hostEntry = entry->toPtr<runtime::HostEntry>();
  image.owner = std::move(owner);
  return image;
}

} // namespace ditron::jit
