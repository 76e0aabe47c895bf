//===- Rendezvous.cpp - Where the processes of a job on one machine meet ------------------------------------------===//
//
// Messages are packets (SOCK_SEQPACKET), one per step and direction: a header, the step's name, a body, and descriptors in
// the ancillary data. Rank 0 answers every step, with what all gave or with the error that all are to report.
//
//===--------------------------------------------------------------------------------------------------------------===//
#include "ditron/runtime/bootstrap/Rendezvous.h"

#include "ditron/support/ForkGate.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace ditron::bootstrap {

namespace {

constexpr uint32_t magic = 0x4d524444;  // "DDRM"
constexpr size_t mostBytes = 64 << 10;  ///< Of one packet; well below the kernel's default buffer.
constexpr size_t mostDescriptors = 128; ///< Of one packet; the kernel takes 253.

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int remainingMilliseconds(double deadline) {
  return static_cast<int>(std::clamp((deadline - now()) * 1e3 + 1, 0.0, 1e9));
}

Status hasEnded(std::string_view step, uint32_t rank) {
  return {StatusCode::TimeOut, fmt::format("step '{}': the process of rank {} has ended", step, rank)};
}

Status systemError(std::string_view action) {
  return Status(StatusCode::Internal, fmt::format("{}: {}", action, std::strerror(errno)));
}

std::string limitText(double seconds) { return fmt::format("within {:g} seconds", seconds); }

/// The file name stands for the job; nobody needs to read the job's name from it.
uint64_t hashOf(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (unsigned char character : text)
    hash = (hash ^ character) * 1099511628211ull;
  return hash;
}

Expected<sockaddr_un> addressOf(const std::string &path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return invalidArgument(
        fmt::format("the path of a socket is limited to {} characters: '{}'", sizeof(address.sun_path) - 1, path));
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

/// The process at the other end is this user's.
bool isOwnUser(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

} // namespace

Descriptor::~Descriptor() {
  if (value >= 0)
    close(value);
}

std::string randomName(unsigned bytes) {
  std::string data(bytes, '\0'), text;
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = getrandom(data.data() + filled, bytes - filled, 0);
    if (got > 0)
      filled += static_cast<size_t>(got);
  }
  for (unsigned char byte : data)
    text += fmt::format("{:02x}", byte);
  return text;
}

Expected<std::string> privateDirectory() {
  std::string path;
  if (const char *runtimeDirectory = std::getenv("XDG_RUNTIME_DIR"); runtimeDirectory && runtimeDirectory[0] == '/')
    path = fmt::format("{}/ditron", runtimeDirectory);
  struct stat info = {};
  auto usable = [&](const std::string &candidate) {
    return (mkdir(candidate.c_str(), 0700) == 0 || errno == EEXIST) && lstat(candidate.c_str(), &info) == 0;
  };
  if (path.empty() || !usable(path)) {
    path = fmt::format("/tmp/ditron-{}", geteuid());
    if (!usable(path))
      return systemError(fmt::format("cannot make the directory {}", path));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0)
    return Status(StatusCode::Unsupported,
                  fmt::format("{} is not a directory that only this user can enter (mode 0700); remove it", path));
  return path;
}

struct Rendezvous::Message {
  uint32_t rank = 0;
  uint32_t sequence = 0;
  bool isError = false;
  std::string step;
  std::string body;
  std::vector<Descriptor> received;
  std::vector<int> attached; ///< To send; not owned.
};

namespace {

/// How a message begins on the wire.
struct Header {
  uint32_t magic, rank, sequence, isError, stepBytes, bodyBytes;
};

} // namespace

Rendezvous::Rendezvous(RendezvousOptions options) : options(std::move(options)) {}
Rendezvous::~Rendezvous() = default;

Status Rendezvous::send(int socket, uint32_t to, const Message &message) const {
  const Header header = {magic,
                         message.rank,
                         message.sequence,
                         message.isError,
                         static_cast<uint32_t>(message.step.size()),
                         static_cast<uint32_t>(message.body.size())};
  std::string packet(reinterpret_cast<const char *>(&header), sizeof(header));
  packet += message.step;
  packet += message.body;
  if (packet.size() > mostBytes || message.attached.size() > mostDescriptors)
    return invalidArgument(
        fmt::format("step '{}' exchanges {} bytes and {} descriptors in one message; {} and {} are allowed",
                    message.step, packet.size(), message.attached.size(), mostBytes, mostDescriptors));
  iovec part = {packet.data(), packet.size()};
  msghdr envelope = {};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * mostDescriptors)] = {};
  if (!message.attached.empty()) {
    const size_t bytes = sizeof(int) * message.attached.size();
    envelope.msg_control = control;
    envelope.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr *rights = CMSG_FIRSTHDR(&envelope);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), message.attached.data(), bytes);
  }
  while (sendmsg(socket, &envelope, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR)
      continue;
    if (errno == EPIPE || errno == ECONNRESET)
      return hasEnded(message.step, to);
    return systemError(fmt::format("step '{}': cannot send to rank {}", message.step, to));
  }
  return Status::ok();
}

Expected<Rendezvous::Message> Rendezvous::receive(int socket, uint32_t from, double deadline,
                                                  std::string_view step) const {
  const ForkGateOpen forksGoAhead;
  pollfd waiting = {socket, POLLIN, 0};
  for (;;) {
    const int ready = poll(&waiting, 1, remainingMilliseconds(deadline));
    if (ready > 0)
      break;
    if (ready == 0 && now() >= deadline)
      return Status(StatusCode::TimeOut, fmt::format("step '{}': rank {} has not arrived {}", step, from,
                                                     limitText(options.timeLimitSeconds)));
    if (ready < 0 && errno != EINTR)
      return systemError("cannot wait for a message");
  }
  std::string packet(mostBytes, '\0');
  iovec part = {packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * mostDescriptors)] = {};
  msghdr envelope = {};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  envelope.msg_control = control;
  envelope.msg_controllen = sizeof(control);
  ssize_t got;
  // A process that closes with unread packets raises ECONNRESET here once; what it said before can still be read after.
  bool wasReset = false;
  do
    got = recvmsg(socket, &envelope, MSG_CMSG_CLOEXEC);
  while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(wasReset, true))));
  if (got == 0 || (got < 0 && errno == ECONNRESET))
    return hasEnded(step, from);
  if (got < 0)
    return systemError("cannot receive a message");

  Message message;
  for (cmsghdr *header = CMSG_FIRSTHDR(&envelope); header; header = CMSG_NXTHDR(&envelope, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      message.received.emplace_back(descriptor);
    }
  }
  Header header;
  if (static_cast<size_t>(got) < sizeof(header))
    return internalError("a message is too short");
  std::memcpy(&header, packet.data(), sizeof(header));
  if (header.magic != magic ||
      static_cast<uint64_t>(got) != sizeof(header) + uint64_t(header.stepBytes) + header.bodyBytes ||
      (envelope.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
    return internalError("a message is not one of Ditron's, or of another version's");
  message.rank = header.rank;
  message.sequence = header.sequence;
  message.isError = header.isError;
  message.step = packet.substr(sizeof(header), header.stepBytes);
  message.body = packet.substr(sizeof(header) + header.stepBytes, header.bodyBytes);
  if (message.isError)
    return Status(static_cast<StatusCode>(message.sequence), message.body);
  return message;
}

Status Rendezvous::tellRankZero(const Message &message) const {
  const Status sent = send(sockets[0].get(), 0, message);
  if (sent.isOk())
    return sent;
  // It may have said before it ended who made it end.
  const Expected<Message> last = receive(sockets[0].get(), 0, now(), message.step);
  return last.isOk() ? sent : last.status();
}

Status Rendezvous::broadcastError(const Status &status) {
  Message message;
  message.isError = true;
  message.sequence = static_cast<uint32_t>(status.code());
  message.body = status.message().substr(0, mostBytes / 2);
  for (uint32_t rank = 1; rank < sockets.size(); ++rank)
    if (sockets[rank].isOpen())
      (void)send(sockets[rank].get(), rank, message);
  return status;
}

std::string Rendezvous::pointerFile() const {
  return fmt::format("{}/job-{:016x}", options.directory, hashOf(options.job));
}

Expected<std::unique_ptr<Rendezvous>> Rendezvous::join(const RendezvousOptions &given) {
  RendezvousOptions options = given;
  if (options.numRanks < 1 || options.rank >= options.numRanks)
    return invalidArgument(fmt::format("rank {} of {} ranks", options.rank, options.numRanks));
  if (options.numRanks > mostDescriptors)
    return unsupported(
        fmt::format("{} processes on one machine; at most {} are accepted", options.numRanks, mostDescriptors));
  if (options.directory.empty()) {
    DITRON_ASSIGN_OR_RETURN(options.directory, privateDirectory());
  }
  std::unique_ptr<Rendezvous> rendezvous(new Rendezvous(std::move(options)));
  if (rendezvous->numRanks() > 1)
    DITRON_RETURN_IF_ERROR(rendezvous->rank() == 0 ? rendezvous->listenAndAccept() : rendezvous->findAndConnect());
  return rendezvous;
}

Status Rendezvous::listenAndAccept() {
  sockets.resize(numRanks());
  const std::string socketPath = fmt::format("{}/{}.sock", options.directory, randomName(12));
  const std::string cookie = randomName(16);
  // Both files go, whatever happens.
  struct Files {
    std::vector<std::string> paths;
    ~Files() {
      for (const std::string &path : paths)
        unlink(path.c_str());
    }
  } files;

  const Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener.isOpen())
    return systemError("cannot make a socket");
  DITRON_ASSIGN_OR_RETURN(const sockaddr_un address, addressOf(socketPath));
  if (bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
    return systemError(fmt::format("cannot bind the socket {}", socketPath));
  files.paths.push_back(socketPath);
  if (chmod(socketPath.c_str(), 0600) != 0 || listen(listener.get(), static_cast<int>(numRanks())) != 0)
    return systemError(fmt::format("cannot listen at {}", socketPath));

  // Listening comes before publishing, so that whoever reads the file can connect at once.
  const std::string written = fmt::format("{}/{}.new", options.directory, randomName(12));
  {
    const Descriptor file(open(written.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    const std::string text = fmt::format("{}\n{}\n", socketPath, cookie);
    if (!file.isOpen() || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return systemError(fmt::format("cannot write {}", written));
  }
  if (rename(written.c_str(), pointerFile().c_str()) != 0)
    return systemError(fmt::format("cannot publish {}", pointerFile()));
  files.paths.push_back(pointerFile());

  const ForkGateOpen forksGoAhead;
  const double deadline = now() + options.timeLimitSeconds;
  for (uint32_t joined = 1; joined < numRanks();) {
    pollfd waiting = {listener.get(), POLLIN, 0};
    if (poll(&waiting, 1, remainingMilliseconds(deadline)) <= 0) {
      if (now() < deadline)
        continue;
      std::vector<uint32_t> absent;
      for (uint32_t rank = 1; rank < numRanks(); ++rank)
        if (!sockets[rank].isOpen())
          absent.push_back(rank);
      return broadcastError(Status(
          StatusCode::TimeOut, fmt::format("start of the job: {} of {} ranks have not arrived {}: {}", absent.size(),
                                           numRanks(), limitText(options.timeLimitSeconds), fmt::join(absent, ", "))));
    }
    Descriptor connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.isOpen() || !isOwnUser(connection.get()))
      continue;
    Expected<Message> hello = receive(connection.get(), 0, std::min(deadline, now() + 5), "join");
    if (!hello.isOk() || hello->body != cookie)
      continue; // not one of this job
    const uint32_t rank = hello->rank;
    if (hello->sequence != numRanks() || rank == 0 || rank >= numRanks() || sockets[rank].isOpen())
      return broadcastError(invalidArgument(
          fmt::format("start of the job: a process says that it is rank {} of {}; this is a job of {} ranks{}", rank,
                      hello->sequence, numRanks(),
                      rank < numRanks() && sockets[rank].isOpen() ? ", and that rank is there already" : "")));
    sockets[rank] = std::move(connection);
    ++joined;
  }
  // Everyone is there: say so, in the form of a first step.
  return barrier("start of the job");
}

Status Rendezvous::connectTo(const std::string &socketPath, const std::string &cookie) {
  Descriptor connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection.isOpen())
    return systemError("cannot make a socket");
  DITRON_ASSIGN_OR_RETURN(const sockaddr_un address, addressOf(socketPath));
  if (connect(connection.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(address)) != 0)
    return systemError(fmt::format("cannot connect to {}", socketPath));
  if (!isOwnUser(connection.get()))
    return Status(StatusCode::Unsupported, fmt::format("the process at {} is another user's", socketPath));
  Message hello;
  hello.rank = rank();
  hello.sequence = numRanks();
  hello.step = "join";
  hello.body = cookie;
  DITRON_RETURN_IF_ERROR(send(connection.get(), 0, hello));
  sockets.clear();
  sockets.push_back(std::move(connection));
  return Status::ok();
}

Status Rendezvous::findAndConnect() {
  const ForkGateOpen forksGoAhead;
  const double deadline = now() + options.timeLimitSeconds;
  for (;;) {
    const Descriptor file(open(pointerFile().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    char text[512] = {};
    struct stat info = {};
    if (file.isOpen() && fstat(file.get(), &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0 &&
        read(file.get(), text, sizeof(text) - 1) > 0) {
      const std::string_view content = text;
      const size_t first = content.find('\n'), second = content.find('\n', first + 1);
      if (second != std::string_view::npos &&
          connectTo(std::string(content.substr(0, first)), std::string(content.substr(first + 1, second - first - 1)))
              .isOk())
        break;
    }
    if (now() >= deadline)
      return Status(StatusCode::TimeOut,
                    fmt::format("start of the job: rank 0 has not arrived {} (rank {} looks for it in {})",
                                limitText(options.timeLimitSeconds), rank(), options.directory));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return barrier("start of the job");
}

Expected<std::vector<Rendezvous::Message>> Rendezvous::collect(std::string_view step) {
  const ForkGateOpen forksGoAhead;
  const double deadline = now() + options.timeLimitSeconds;
  std::vector<Message> messages(numRanks());
  std::vector<bool> arrived(numRanks());
  arrived[0] = true;
  for (uint32_t count = 1; count < numRanks();) {
    std::vector<pollfd> waiting;
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 1; rank < numRanks(); ++rank)
      if (!arrived[rank]) {
        waiting.push_back({sockets[rank].get(), POLLIN, 0});
        ranks.push_back(rank);
      }
    const int ready = poll(waiting.data(), waiting.size(), remainingMilliseconds(deadline));
    if (ready <= 0 && now() >= deadline)
      return broadcastError(Status(
          StatusCode::TimeOut, fmt::format("step '{}': {} of {} ranks have not arrived {}: {}", step, ranks.size(),
                                           numRanks(), limitText(options.timeLimitSeconds), fmt::join(ranks, ", "))));
    for (size_t i = 0; ready > 0 && i < waiting.size(); ++i) {
      if (!waiting[i].revents)
        continue;
      Expected<Message> message = receive(waiting[i].fd, ranks[i], deadline, step);
      if (!message.isOk())
        return broadcastError(message.status());
      if (message->step != step || message->sequence != sequence)
        return broadcastError(invalidArgument(fmt::format(
            "rank {} is at step '{}' while rank 0 is at '{}'; all ranks must make the same collective calls in "
            "the same order",
            ranks[i], message->step, step)));
      messages[ranks[i]] = std::move(message).value();
      arrived[ranks[i]] = true;
      ++count;
    }
  }
  return messages;
}

Expected<std::vector<std::string>> Rendezvous::allGather(std::string_view step, std::string_view own) {
  std::vector<std::string> all(numRanks());
  all[rank()] = own;
  if (numRanks() == 1)
    return all;
  ++sequence;
  Message message;
  message.rank = rank();
  message.sequence = sequence;
  message.step = step;
  if (rank() == 0) {
    DITRON_ASSIGN_OR_RETURN(std::vector<Message> messages, collect(step));
    for (uint32_t other = 1; other < numRanks(); ++other)
      all[other] = std::move(messages[other].body);
    // Every text with its length before it.
    for (const std::string &text : all)
      message.body += fmt::format("{} {}", text.size(), text);
    for (uint32_t other = 1; other < numRanks(); ++other)
      DITRON_RETURN_IF_ERROR(send(sockets[other].get(), other, message));
    return all;
  }
  message.body = own;
  DITRON_RETURN_IF_ERROR(tellRankZero(message));
  // Rank 0 says who is late; this one waits a little longer, to hear it.
  const double patience = now() + options.timeLimitSeconds * 1.5 + 1;
  DITRON_ASSIGN_OR_RETURN(Message answer, receive(sockets[0].get(), 0, patience, step));
  std::string_view rest = answer.body;
  for (uint32_t other = 0; other < numRanks(); ++other) {
    const size_t space = rest.find(' ');
    const size_t bytes = std::strtoull(std::string(rest.substr(0, space)).c_str(), nullptr, 10);
    if (space == std::string_view::npos || bytes > rest.size() - space - 1)
      return internalError(fmt::format("step '{}': the answer of rank 0 is damaged", step));
    all[other] = rest.substr(space + 1, bytes);
    rest.remove_prefix(space + 1 + bytes);
  }
  return all;
}

Expected<std::vector<Descriptor>> Rendezvous::allGatherDescriptors(std::string_view step, int own) {
  std::vector<Descriptor> all(numRanks());
  if (numRanks() == 1) {
    all[0] = Descriptor(fcntl(own, F_DUPFD_CLOEXEC, 0));
    return all;
  }
  ++sequence;
  Message message;
  message.rank = rank();
  message.sequence = sequence;
  message.step = step;
  if (rank() == 0) {
    DITRON_ASSIGN_OR_RETURN(std::vector<Message> messages, collect(step));
    all[0] = Descriptor(fcntl(own, F_DUPFD_CLOEXEC, 0));
    for (uint32_t other = 1; other < numRanks(); ++other) {
      if (messages[other].received.size() != 1)
        return broadcastError(internalError(fmt::format("step '{}': rank {} sent {} descriptors instead of one", step,
                                                        other, messages[other].received.size())));
      all[other] = std::move(messages[other].received.front());
    }
    for (const Descriptor &descriptor : all)
      message.attached.push_back(descriptor.get());
    for (uint32_t other = 1; other < numRanks(); ++other)
      DITRON_RETURN_IF_ERROR(send(sockets[other].get(), other, message));
    return all;
  }
  message.attached = {own};
  DITRON_RETURN_IF_ERROR(tellRankZero(message));
  const double patience = now() + options.timeLimitSeconds * 1.5 + 1;
  DITRON_ASSIGN_OR_RETURN(Message answer, receive(sockets[0].get(), 0, patience, step));
  if (answer.received.size() != numRanks())
    return internalError(fmt::format("step '{}': {} descriptors came back for {} ranks (limit on open files?)", step,
                                     answer.received.size(), numRanks()));
  return std::move(answer.received);
}

Status Rendezvous::barrier(std::string_view step) { return allGather(step, "").status(); }

Status Rendezvous::agree(std::string_view step, std::string_view own) {
  DITRON_ASSIGN_OR_RETURN(std::vector<std::string> all, allGather(step, own));
  for (uint32_t other = 0; other < numRanks(); ++other)
    if (all[other] != all[0])
      return invalidArgument(
          fmt::format("{}: rank {} has {} where rank 0 has {}; all ranks must make the same calls in the "
                      "same order",
                      step, other, all[other], all[0]));
  return Status::ok();
}

} // namespace ditron::bootstrap
