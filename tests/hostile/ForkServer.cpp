//===- ForkServer.cpp - Many runs of a program for the price of one start -------------------------------------------===//
//
// Put in front of a program with LD_PRELOAD, it stands between the C library and main: the program starts, loads its libraries and
// runs its constructors once, and then forks a child for each request that comes; the child goes into main with its own arguments,
// folder, streams and limits. The program is the one that users get, main and all; what is saved is 40 ms of loading LLVM.
//
// Without DITRON_FORK_SERVER in the environment main is called as always: so it is in whatever the program starts.
//
// The variable names two descriptors, of requests and of answers. What goes over them, numbers being 32 bits wide:
//
//   request   size, then texts that end in a zero byte: folder, stdin, stdout, stderr, bytes of address space, bytes a file may
//             have, seconds of processor time, NAME=VALUE of the environment ..., "", the words behind the program's name ...
//   answer    the child's process id (and group) when it starts; what waitpid says of it when it has ended
//
//===--------------------------------------------------------------------------------------------------------------===//
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using Main = int (*)(int, char **, char **);
Main programMain = nullptr;
int requests = -1, answers = -1;

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "fork server: %s: %s\n", what, std::strerror(errno));
  ::_exit(126);
}

/// False at the end of the input.
bool readAll(void *data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t count = ::read(requests, static_cast<char *>(data) + done, size - done);
    if (count == 0)
      return false;
    if (count < 0 && errno != EINTR)
      fail("read");
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
  return true;
}

void answer(uint32_t number) {
  if (::write(answers, &number, sizeof(number)) != sizeof(number))
    fail("write");
}

void openAs(int descriptor, const char *path, int flags) {
  const int opened = ::open(path, flags, 0600);
  if (opened < 0 || ::dup2(opened, descriptor) < 0)
    fail(path);
  if (opened != descriptor)
    ::close(opened);
}

void limit(__rlimit_resource which, const char *most) {
  const rlim_t value = std::strtoull(most, nullptr, 10);
  const struct rlimit limits = {value, value};
  if (::setrlimit(which, &limits) != 0)
    fail("setrlimit");
}

/// What the child does: becomes the program as the request wants it.
int runProgram(std::vector<char *> texts, char *programName) {
  ::setpgid(0, 0);
  ::close(requests);
  ::close(answers);
  if (texts.size() < 8 || ::chdir(texts[0]) != 0)
    fail("the request's folder");
  openAs(STDIN_FILENO, texts[1], O_RDONLY);
  openAs(STDOUT_FILENO, texts[2], O_WRONLY | O_CREAT);
  openAs(STDERR_FILENO, texts[3], O_WRONLY | O_CREAT);
  limit(RLIMIT_AS, texts[4]);
  limit(RLIMIT_FSIZE, texts[5]);
  limit(RLIMIT_CPU, texts[6]);
  limit(RLIMIT_CORE, "0");
  size_t at = 7;
  for (; at < texts.size() && *texts[at]; ++at)
    ::putenv(texts[at]);
  texts.erase(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(at));
  texts.front() = programName; // where the empty text stood
  texts.push_back(nullptr);
  return programMain(static_cast<int>(texts.size()) - 1, texts.data(), environ);
}

int serve(int argc, char **argv, char **environment) {
  const char *descriptors = std::getenv("DITRON_FORK_SERVER");
  if (!descriptors || std::sscanf(descriptors, "%d,%d", &requests, &answers) != 2)
    return programMain(argc, argv, environment);
  ::unsetenv("DITRON_FORK_SERVER");
  ::unsetenv("LD_PRELOAD");
  for (uint32_t size = 0; readAll(&size, sizeof(size));) {
    // The child's arguments live in it, so it must not be freed: one buffer for each request, in the child only.
    std::string request(size, '\0');
    if (!readAll(request.data(), size))
      break;
    const pid_t child = ::fork();
    if (child < 0)
      fail("fork");
    if (child == 0) {
      auto *kept = new std::string(std::move(request));
      std::vector<char *> texts;
      for (size_t at = 0; at < kept->size(); at += std::strlen(kept->data() + at) + 1)
        texts.push_back(kept->data() + at);
      return runProgram(std::move(texts), argv[0]);
    }
    answer(static_cast<uint32_t>(child));
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
      if (errno != EINTR)
        fail("waitpid");
    answer(static_cast<uint32_t>(status));
  }
  ::_exit(0);
}

} // namespace

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the C library's.
extern "C" int __libc_start_main(Main main, int argc, char **argv, void (*init)(), void (*fini)(), void (*loaderFini)(),
                                 void *stackEnd) {
  programMain = main;
  auto *next = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return next(serve, argc, argv, init, fini, loaderFini, stackEnd);
}
// NOLINTEND
