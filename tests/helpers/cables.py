"""What lies between a client and a broker: a cable that can be pulled, and a guard who wants TLS and a password."""

from __future__ import annotations

import shutil
import socket
import ssl
import struct
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

LACKS_OPENSSL = "no openssl here: apt-get install openssl"
API_VERSIONS, SASL_HANDSHAKE = 18, 17
"""Kafka's numbers of two questions."""


class Cable:
    """Connections to a port, through another that can be pulled out and put in again; who asks where the broker is, is told
    the other."""

    def __init__(self, target: int) -> None:
        self.target, self.open = target, list[socket.socket]()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._named = [b"127.0.0.1" + struct.pack(">i", port) for port in (self.target, self.port)]
        self.plug()

    def plug(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def pull(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.open:
            with suppress(OSError):  # which has gone already
                one.shutdown(socket.SHUT_RDWR)
        self.open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            self.open += [near, far]
            threading.Thread(target=self._connect, args=(near, far), daemon=True).start()

    def _connect(self, near: socket.socket, far: socket.socket) -> None:
        threading.Thread(target=self._carry, args=(far, near), daemon=True).start()
        self._carry(near, far)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with source, suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data.replace(*self._named))
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


class Guard(Cable):
    """The same before Kafka, for those who come by TLS with the right name and password (SASL PLAIN). The mock knows neither:
    what is asked before is answered here, as the protocol has it."""

    def __init__(self, target: int, certificates: Certificates, name: str, password: str) -> None:
        self._secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._secure.load_cert_chain(certificates.certificate, certificates.key)
        self._wanted = f"\0{name}\0{password}".encode()
        super().__init__(target)

    def _connect(self, near: socket.socket, far: socket.socket) -> None:
        try:
            near = self._secure.wrap_socket(near, server_side=True)
            admitted = self._admits(near, far)
        except OSError:  # no TLS, or it has gone
            admitted = False
        if admitted:
            super()._connect(near, far)
        else:
            near.close()
            far.close()

    def _admits(self, near: socket.socket, far: socket.socket) -> bool:
        while (asked := _frame(near)) != self._wanted:
            question, version = struct.unpack(">hh", asked[:4])
            if question == SASL_HANDSHAKE:
                _send(near, asked[4:8] + struct.pack(">hih", 0, 1, 5) + b"PLAIN")
                continue
            if question != API_VERSIONS:
                return False
            _send(far, asked)
            answer, more = _frame(far), struct.pack(">hhh", SASL_HANDSHAKE, 0, 0)
            # The list of questions gets one more, in versions 0 to 0; its length stands in front, in a byte or in four.
            if version >= 3:
                answer = answer[:6] + bytes([answer[6] + 1]) + more + b"\0" + answer[7:]
            else:
                answer = answer[:6] + struct.pack(">i", struct.unpack(">i", answer[6:10])[0] + 1) + more + answer[10:]
            _send(near, answer)
        _send(near, b"")
        return True


def _frame(near: socket.socket) -> bytes:
    """What follows its length."""

    def exactly(size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (more := near.recv(size - len(data))):
                raise ConnectionError("it has gone")
            data += more
        return data

    return exactly(struct.unpack(">i", exactly(4))[0])


def _send(near: socket.socket, data: bytes) -> None:
    near.sendall(struct.pack(">i", len(data)) + data)


class Certificates:
    """A key of this machine, and a certificate that says so by itself."""

    def __init__(self, folder: Path) -> None:
        self.key, self.certificate = folder / "key.pem", folder / "certificate.pem"
        call = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        call += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run([*call, "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)


def openssl_is_here() -> bool:
    return shutil.which("openssl") is not None
