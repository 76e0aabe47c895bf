"""The client of ForkServer.cpp: one server for each program, a process for each run."""
import os
import resource
import select
import signal
import struct
import subprocess
from dataclasses import dataclass


@dataclass
class Limits:
    seconds: float  # on the clock; a machine may be busy with other things
    processor_seconds: int
    address_bytes: int
    file_bytes: int

    def apply(self):
        """For a process that is not the server's, before it becomes the program."""
        for which, most in ((resource.RLIMIT_AS, self.address_bytes), (resource.RLIMIT_FSIZE, self.file_bytes),
                            (resource.RLIMIT_CPU, self.processor_seconds)):
            resource.setrlimit(which, (most, most))


class Ended:
    """How a run ended: `code` as subprocess has it, negative for a signal, None when it took too long."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


class ForkServer:
    def __init__(self, library, program, folder, environment):
        """`folder` is where the streams of the runs are kept, one after the other."""
        self.streams = [os.path.join(folder, os.path.basename(program) + '.' + name) for name in ('in', 'out', 'err')]
        self.command = ([program], dict(environment, LD_PRELOAD=library, LD_BIND_NOW='1'))
        self.start()

    def start(self):
        read_request, self.requests = os.pipe()
        self.answers, write_answer = os.pipe()

        command, environment = self.command
        self.process = subprocess.Popen(command, env=dict(environment, DITRON_FORK_SERVER='%d,%d' % (read_request, write_answer)),
                                        pass_fds=(read_request, write_answer), stdin=subprocess.DEVNULL)
        os.close(read_request)
        os.close(write_answer)

    def stop(self):
        os.close(self.requests)
        os.close(self.answers)
        self.process.wait()

    def read_answer(self, seconds):
        """Four bytes; None when they do not come in time (None: any)."""
        if not select.select([self.answers], [], [], seconds)[0]:
            return None
        data = os.read(self.answers, 4)
        if len(data) != 4:
            raise RuntimeError('the fork server of %s has ended' % self.command[0][0])
        return data

    def run(self, words, folder, data, environment, limits):
        for path, content in zip(self.streams, (data, b'', b'')):
            with open(path, 'wb') as stream:
                stream.write(content)
        texts = [folder, *self.streams, *map(str, (limits.address_bytes, limits.file_bytes, limits.processor_seconds)),
                 *('%s=%s' % pair for pair in environment.items()), '', *words]
        request = b''.join(os.fsencode(text) + b'\0' for text in texts)
        os.write(self.requests, struct.pack('<I', len(request)) + request[:60000])
        for at in range(60000, len(request), 60000):
            os.write(self.requests, request[at:at + 60000])
        child = struct.unpack('<i', self.read_answer(None))[0]
        status = self.read_answer(limits.seconds)
        code = None
        if status is None:
            os.killpg(child, signal.SIGKILL)
            self.read_answer(None)
        else:
            code = os.waitstatus_to_exitcode(struct.unpack('<i', status)[0])
        out, err = (open(path, errors='replace').read(10 << 20) for path in self.streams[1:])
        return Ended(code, out, err)
