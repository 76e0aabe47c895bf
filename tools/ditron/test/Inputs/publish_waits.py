"""Publishes waits as a GPU does (ditron/abi/WaitBoard.h), then runs a command line in which PID stands for this process."""
import fcntl, os, struct, subprocess, sys, threading, time

TABLE = 4096 + 4096 * 128
path = '/dev/shm/ditron-%d-%d-1-0' % (os.geteuid(), os.getpid())
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
fcntl.flock(file, fcntl.LOCK_EX)
try:
    os.ftruncate(file, TABLE + (1 << 20))
    table = b'memory\t4096\t64\t8\tsymmetric\tready\nheap\t1\t4096\t4096\nkernel\t77\tconsumer\tgemm.py\n'
    os.pwrite(file, table, TABLE)

    def publish(slot, block, looked):
        os.pwrite(file, struct.pack('<12I6Q', 2, 77, block, 0, 0, 31, 12, 5, 5, 8, 0, 3, 4096 + 24, 3, 9, 10**9, 2, looked),
                  4096 + 128 * slot)

    publish(0, 4, 3 * 10**9)
    publish(7, 6, 3 * 10**9)
    head = struct.pack('<QIIQIIIIQQQQQQ', 0x44524f4254494157, 1, os.getpid(), 0, 1, 2, 0, 0, TABLE, 1 << 20, 4096, 4096, len(table), 0)
    os.pwrite(file, head + b'x'.ljust(64, b'\0') + b'NVIDIA H200'.ljust(64, b'\0'), 0)
    done = threading.Event()

    def look():
        now = 3 * 10**9
        while not done.wait(0.001):
            now += 10**6
            publish(0, 4, now)

    looks = threading.Thread(target=look)
    looks.start()
    code = subprocess.run([word.replace('PID', str(os.getpid())) for word in sys.argv[1:]]).returncode
    done.set()
    looks.join()
finally:
    os.unlink(path)
sys.exit(code)
