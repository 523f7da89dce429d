"""proxy: a TCP proxy on loopback that fails as networks do.

It forwards bytes to one target and can, at any moment: `cut` all connections by a reset, `refuse`
new ones, `freeze` everything (connections stay up and nothing moves, as behind a dead switch),
`delay` every chunk, and `resume`.
"""

import socket
import struct
import threading
import time


class Proxy:
    def __init__(self, host, port):
        self.target = (host, port)
        self.connections = 0  # accepted so far
        self._lock = threading.Lock()
        self._pairs = set()
        self._moving = threading.Event()
        self._moving.set()
        self._refusing = False
        self._cuts = 0  # a connection that was begun before the latest is not served
        self._delay = 0.0
        self._closed = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._closed = True
        self._moving.set()
        # shutdown wakes the thread in accept; close alone would leave it there.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self):
        """Resets every connection; new ones are served."""
        with self._lock:
            self._cuts += 1
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for side in pair:
                reset(side)

    def refuse(self):
        """Resets every connection and every later one, until resume."""
        self._refusing = True
        self.cut()

    def freeze(self):
        self._moving.clear()

    def delay(self, seconds):
        self._delay = seconds

    def resume(self):
        self._refusing, self._delay = False, 0.0
        self._moving.set()

    def open(self):
        """How many connections are up."""
        with self._lock:
            return len(self._pairs)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            cuts = self._cuts  # before the look at what holds: refuse sets it first, then cuts
            if self._closed or self._refusing:
                reset(near)
                continue
            self.connections += 1
            threading.Thread(target=self._serve, args=(near, cuts), daemon=True).start()

    def _serve(self, near, cuts):
        self._moving.wait()
        try:
            far = socket.create_connection(self.target, timeout=60)
        except OSError:
            reset(near)
            return
        far.settimeout(None)
        for side in (near, far):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (near, far)
        with self._lock:
            current = cuts == self._cuts
            if current:
                self._pairs.add(pair)
        if not current:
            for side in pair:
                reset(side)
            return
        threading.Thread(target=self._pump, args=(pair, near, far), daemon=True).start()
        self._pump(pair, far, near)

    def _pump(self, pair, source, sink):
        try:
            while chunk := source.recv(65536):
                if self._delay:
                    time.sleep(self._delay)
                self._moving.wait()
                sink.sendall(chunk)
        except OSError:
            pass
        with self._lock:
            self._pairs.discard(pair)
        for side in pair:
            hang_up(side)


def hang_up(side):
    """Closes in order. A thread that sits in recv on it must wake, so shutdown comes first."""
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    side.close()


def reset(side):
    """Closes with RST: the peer notices at once."""
    try:
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    hang_up(side)
