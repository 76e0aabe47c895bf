//===- HostObject.cpp - Compiled code for simulated targets into this process -------------------------------------===//
//
// Read the headers; give every section that is in memory a place in one mapping: code and stubs, then constants, then data,
// each beginning at a page of its own; copy; relocate; protect. The mapping is one, so that the distances between the sections
// fit 32 bits; what lies outside of it may be further away and is reached through stubs.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/sim/HostObject.h"

#include "ditron/sim/AbiSymbols.h"

#include <bit>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>

namespace ditron::runtime {

namespace {

/// Much more than any kernel has, and less than 32 bits of distance.
constexpr uint64_t mostBytes = uint64_t(1) << 30;

/// "jmp *2(%rip)", two bytes of padding, and the address, which also serves as the word of GOT relocations.
constexpr unsigned char stubCode[8] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0xcc, 0xcc};
constexpr uint64_t stubBytes = 16, stubAddress = 8;

/// The parts of the mapping, in order.
enum Part { Code, Constants, Data, numParts };

Status malformed(std::string_view what) { return invalidArgument(fmt::format("malformed object: {}", what)); }

std::string machineName(uint16_t machine) {
  switch (machine) {
  case EM_X86_64: return "x86-64";
  case EM_AARCH64: return "aarch64";
  case EM_RISCV: return "riscv";
  case EM_PPC64: return "ppc64";
  default: return fmt::format("machine number {}", machine);
  }
}

/// The address of a name that the object does not define; null when nobody has it.
void *findOutside(const std::string &name) {
  static const std::unordered_map<std::string_view, void *> *simulator = [] {
    auto *table = new std::unordered_map<std::string_view, void *>;
    for (const sim::AbiSymbol &symbol : sim::abiSymbols())
      table->emplace(symbol.name, symbol.address);
    return table;
  }();
  const auto found = simulator->find(name);
  return found != simulator->end() ? found->second : dlsym(RTLD_DEFAULT, name.c_str());
}

/// The memory of one object.
class Mapping {
public:
  ~Mapping() {
    if (base != MAP_FAILED)
      munmap(base, size);
  }
  bool reserve(uint64_t bytes) {
    size = bytes;
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base != MAP_FAILED;
  }
  char *at(uint64_t offset) const { return static_cast<char *>(base) + offset; }

private:
  void *base = MAP_FAILED;
  uint64_t size = 0;
};

/// One object on its way into memory.
class ObjectLinker {
public:
  explicit ObjectLinker(std::string_view object) : object(object) {}

  Expected<ModuleImage> link(std::string_view entrySymbol) {
    DITRON_RETURN_IF_ERROR(readHeaders());
    DITRON_RETURN_IF_ERROR(readSymbols());
    DITRON_RETURN_IF_ERROR(
        visitRelocations([&](const Elf64_Shdr &, const Elf64_Rela &each) { return needStub(each); }));
    DITRON_RETURN_IF_ERROR(place());
    DITRON_RETURN_IF_ERROR(map());
    DITRON_RETURN_IF_ERROR(
        visitRelocations([&](const Elf64_Shdr &target, const Elf64_Rela &each) { return relocate(target, each); }));
    DITRON_RETURN_IF_ERROR(protect());
    return findEntry(entrySymbol);
  }

private:
  template <typename T> bool read(uint64_t offset, T &value) const {
    if (offset > object.size() || object.size() - offset < sizeof(T))
      return false;
    std::memcpy(&value, object.data() + offset, sizeof(T));
    return true;
  }
  static bool isInMemory(const Elf64_Shdr &section) { return section.sh_flags & SHF_ALLOC; }
  static Part partOf(const Elf64_Shdr &section) {
    return section.sh_flags & SHF_EXECINSTR ? Code : section.sh_flags & SHF_WRITE ? Data : Constants;
  }
  uint64_t indexOf(const Elf64_Shdr &section) const { return &section - sections.data(); }

  Status readHeaders();
  Status checkSection(const Elf64_Shdr &section) const;
  Status readSymbols();
  Expected<std::string> nameOf(const Elf64_Sym &symbol) const;
  Status visitRelocations(const auto &visit) const;
  Status needStub(const Elf64_Rela &relocation);
  Status place();
  Status map();
  Expected<uint64_t> addressOf(uint32_t symbolIndex) const;
  Status relocate(const Elf64_Shdr &target, const Elf64_Rela &relocation) const;
  Status protect() const;
  Expected<ModuleImage> findEntry(std::string_view name) const;

  std::string_view object;
  std::vector<Elf64_Shdr> sections;
  std::vector<uint64_t> offsets; ///< Of the sections, in the mapping.
  std::vector<Elf64_Sym> symbols;
  std::string_view symbolNames;
  std::map<uint32_t, uint64_t> stubs; ///< By symbol: offset in the mapping, after place().
  uint64_t partStart[numParts + 1] = {};
  std::shared_ptr<Mapping> memory = std::make_shared<Mapping>();
};

Status ObjectLinker::readHeaders() {
  Elf64_Ehdr header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return malformed("it is no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL)
    return malformed("it is no relocatable object of a 64-bit little-endian machine");
  if (header.e_machine != EM_X86_64)
    return unsupported(
        fmt::format("the code is for {}; simulated targets run on x86-64", machineName(header.e_machine)));
#if !defined(__x86_64__)
  return unsupported("the code is for x86-64, and this machine is another: simulated targets run on x86-64");
#endif
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0)
    return malformed("its table of sections");
  sections.resize(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (header.e_shoff > object.size() || !read(header.e_shoff + i * sizeof(Elf64_Shdr), sections[i]))
      return malformed("its table of sections ends behind the file");
    DITRON_RETURN_IF_ERROR(checkSection(sections[i]));
  }
  return Status::ok();
}

Status ObjectLinker::checkSection(const Elf64_Shdr &section) const {
  if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL &&
      (section.sh_offset > object.size() || section.sh_size > object.size() - section.sh_offset))
    return malformed("a section ends behind the file");
  if (!isInMemory(section))
    return Status::ok();
  if (section.sh_flags & SHF_TLS)
    return unsupported("the object has thread-local data, which is not supported");
  const uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
  if (!std::has_single_bit(alignment) || alignment > 4096 || section.sh_size > mostBytes)
    return malformed(fmt::format("a section of {} bytes at multiples of {}; at most {} and 4096 are accepted",
                                 section.sh_size, alignment, mostBytes));
  if (section.sh_type != SHT_PROGBITS && section.sh_type != SHT_NOBITS && section.sh_type != SHT_X86_64_UNWIND &&
      section.sh_type != SHT_NOTE)
    return unsupported(
        fmt::format("the object has a section of type {} in memory, which is not supported", section.sh_type));
  if (section.sh_type == SHT_NOBITS && partOf(section) == Code)
    return malformed("code without bytes");
  return Status::ok();
}

Status ObjectLinker::readSymbols() {
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_SYMTAB)
      continue;
    if (!symbols.empty() || section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size() ||
        sections[section.sh_link].sh_type != SHT_STRTAB)
      return malformed("its table of symbols");
    symbols.resize(section.sh_size / sizeof(Elf64_Sym));
    for (size_t i = 0; i < symbols.size(); ++i)
      if (!read(section.sh_offset + i * sizeof(Elf64_Sym), symbols[i]))
        return malformed("its table of symbols ends behind the file");
    const Elf64_Shdr &names = sections[section.sh_link];
    symbolNames = object.substr(names.sh_offset, names.sh_size);
  }
  return Status::ok();
}

Expected<std::string> ObjectLinker::nameOf(const Elf64_Sym &symbol) const {
  if (symbol.st_name >= symbolNames.size())
    return malformed("the name of a symbol lies outside of the table of names");
  const std::string_view rest = symbolNames.substr(symbol.st_name);
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos)
    return malformed("the name of a symbol has no end");
  return std::string(rest.substr(0, end));
}

/// Calls visit(section, relocation) for every relocation of what is in memory.
Status ObjectLinker::visitRelocations(const auto &visit) const {
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_RELA && section.sh_type != SHT_REL)
      continue;
    if (section.sh_info >= sections.size())
      return malformed("relocations of a section that is not there");
    const Elf64_Shdr &target = sections[section.sh_info];
    if (!isInMemory(target))
      continue;
    if (section.sh_type == SHT_REL || section.sh_entsize != sizeof(Elf64_Rela) || target.sh_type == SHT_NOBITS)
      return malformed("relocations in a form that is not known");
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i) {
      Elf64_Rela relocation;
      if (!read(section.sh_offset + i * sizeof(Elf64_Rela), relocation))
        return malformed("relocations end behind the file");
      if (ELF64_R_SYM(relocation.r_info) >= symbols.size())
        return malformed("a relocation names a symbol that is not there");
      DITRON_RETURN_IF_ERROR(visit(target, relocation));
    }
  }
  return Status::ok();
}

/// Stubs are for what is called and not defined here, and for words of addresses.
Status ObjectLinker::needStub(const Elf64_Rela &relocation) {
  const uint32_t index = ELF64_R_SYM(relocation.r_info);
  switch (ELF64_R_TYPE(relocation.r_info)) {
  case R_X86_64_PLT32:
    if (symbols[index].st_shndx == SHN_UNDEF)
      stubs.emplace(index, 0);
    break;
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX: stubs.emplace(index, 0); break;
  default: break;
  }
  return Status::ok();
}

/// Decides where everything lies. Sums cannot overflow: at most 2^16 sections of 2^30 bytes.
Status ObjectLinker::place() {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t next = 0;
  offsets.assign(sections.size(), 0);
  for (int part = 0; part < numParts; ++part) {
    partStart[part] = next;
    for (size_t i = 0; i < sections.size(); ++i) {
      if (!isInMemory(sections[i]) || partOf(sections[i]) != part)
        continue;
      const uint64_t alignment = std::max<uint64_t>(sections[i].sh_addralign, 1);
      offsets[i] = (next + alignment - 1) / alignment * alignment;
      next = offsets[i] + sections[i].sh_size;
    }
    if (part == Code)
      for (auto &[symbol, offset] : stubs) {
        offset = (next + stubBytes - 1) / stubBytes * stubBytes;
        next = offset + stubBytes;
      }
    next = (next + page - 1) / page * page;
  }
  partStart[numParts] = next;
  if (next == 0 || next > mostBytes)
    return malformed(fmt::format("it takes {} bytes of memory; 1 to {} are accepted", next, mostBytes));
  return Status::ok();
}

/// Copies the sections and writes the stubs.
Status ObjectLinker::map() {
  if (!memory->reserve(partStart[numParts]))
    return Status(StatusCode::ResourceExhausted,
                  fmt::format("no memory for {} bytes of code: {}", partStart[numParts], std::strerror(errno)));
  for (size_t i = 0; i < sections.size(); ++i)
    if (isInMemory(sections[i]) && sections[i].sh_type != SHT_NOBITS)
      std::memcpy(memory->at(offsets[i]), object.data() + sections[i].sh_offset, sections[i].sh_size);
  for (const auto &[symbol, offset] : stubs) {
    DITRON_ASSIGN_OR_RETURN(const uint64_t address, addressOf(symbol));
    std::memcpy(memory->at(offset), stubCode, sizeof(stubCode));
    std::memcpy(memory->at(offset + stubAddress), &address, sizeof(address));
  }
  return Status::ok();
}

Expected<uint64_t> ObjectLinker::addressOf(uint32_t symbolIndex) const {
  const Elf64_Sym &symbol = symbols[symbolIndex];
  if (symbol.st_shndx == SHN_ABS)
    return symbol.st_value;
  if (symbol.st_shndx == SHN_UNDEF) {
    DITRON_ASSIGN_OR_RETURN(const std::string name, nameOf(symbol));
    void *address = name.empty() ? nullptr : findOutside(name);
    if (!address && ELF64_ST_BIND(symbol.st_info) != STB_WEAK)
      return unsupported(
          fmt::format("the code calls '{}', which neither the simulator nor the system's libraries have", name));
    return reinterpret_cast<uint64_t>(address);
  }
  if (symbol.st_shndx >= sections.size() || !isInMemory(sections[symbol.st_shndx]) ||
      symbol.st_value > sections[symbol.st_shndx].sh_size)
    return malformed("a symbol lies outside of the sections in memory");
  return reinterpret_cast<uint64_t>(memory->at(offsets[symbol.st_shndx])) + symbol.st_value;
}

Status ObjectLinker::relocate(const Elf64_Shdr &target, const Elf64_Rela &relocation) const {
  const uint32_t symbol = ELF64_R_SYM(relocation.r_info), type = ELF64_R_TYPE(relocation.r_info);
  if (type == R_X86_64_NONE)
    return Status::ok();
  const uint64_t width = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
  if (relocation.r_offset > target.sh_size || target.sh_size - relocation.r_offset < width)
    return malformed("a relocation lies outside of its section");
  char *place = memory->at(offsets[indexOf(target)] + relocation.r_offset);
  const uint64_t here = reinterpret_cast<uint64_t>(place), addend = static_cast<uint64_t>(relocation.r_addend);
  const auto stub = stubs.find(symbol);
  const uint64_t stubAt = stub == stubs.end() ? 0 : reinterpret_cast<uint64_t>(memory->at(stub->second));
  uint64_t value = 0;
  switch (type) {
  case R_X86_64_PLT32:
    if (symbols[symbol].st_shndx == SHN_UNDEF) {
      value = stubAt + addend - here;
      break;
    }
    [[fallthrough]];
  case R_X86_64_PC32:
  case R_X86_64_PC64:
  case R_X86_64_64:
  case R_X86_64_32:
  case R_X86_64_32S: {
    DITRON_ASSIGN_OR_RETURN(const uint64_t address, addressOf(symbol));
    const bool isDistance = type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
    value = address + addend - (isDistance ? here : 0);
    break;
  }
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX: value = stubAt + stubAddress + addend - here; break;
  default: return unsupported(fmt::format("the object has a relocation of type {}, which is not known", type));
  }
  const int64_t wide = static_cast<int64_t>(value);
  if (width == 4 && (type == R_X86_64_32 ? value > UINT32_MAX : wide != static_cast<int32_t>(wide)))
    return malformed("a relocation does not fit 32 bits");
  std::memcpy(place, &value, width); // little-endian: the low bytes come first
  return Status::ok();
}

Status ObjectLinker::protect() const {
  constexpr int protection[numParts] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  for (int part = 0; part < numParts; ++part)
    if (const uint64_t bytes = partStart[part + 1] - partStart[part];
        bytes > 0 && mprotect(memory->at(partStart[part]), bytes, protection[part]) != 0)
      return Status(StatusCode::ResourceExhausted,
                    fmt::format("the system does not let code be executable: {}", std::strerror(errno)));
  return Status::ok();
}

Expected<ModuleImage> ObjectLinker::findEntry(std::string_view name) const {
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    const Elf64_Sym &symbol = symbols[i];
    const bool isCode = symbol.st_shndx < sections.size() && symbol.st_shndx != SHN_UNDEF &&
                        isInMemory(sections[symbol.st_shndx]) && partOf(sections[symbol.st_shndx]) == Code;
    if (!isCode || ELF64_ST_TYPE(symbol.st_info) == STT_SECTION)
      continue;
    DITRON_ASSIGN_OR_RETURN(const std::string symbolName, nameOf(symbol));
    if (symbolName != name)
      continue;
    DITRON_ASSIGN_OR_RETURN(const uint64_t address, addressOf(i));
    if (symbol.st_value >= sections[symbol.st_shndx].sh_size)
      return malformed("its entry lies behind the code");
    ModuleImage image;
    image.hostEntry = reinterpret_cast<HostEntry>(address);
    image.owner = memory;
    return image;
  }
  return malformed(fmt::format("it has no entry '{}'", name));
}

} // namespace

Expected<ModuleImage> loadHostObject(std::string_view object, std::string_view entrySymbol) {
  return ObjectLinker(object).link(entrySymbol);
}

Expected<ModuleImage> makeImage(const Artifact &artifact) {
  ModuleImage image;
  if (artifact.codeKind == ArtifactCode::HostObject) {
    Expected<ModuleImage> linked = loadHostObject(artifact.code, artifact.entrySymbol);
    return linked.isOk() ? std::move(linked)
                         : linked.status().withContext(fmt::format("cannot link kernel '{}'", artifact.kernel));
  }
  // The driver loads it, and assembles it if need be, once for each GPU that runs it.
  image.code = artifact.code;
  return image;
}

} // namespace ditron::runtime
