# A lock whose release deletes the key, whoever set it, or, if RIGHT is set, only if it is its own.
import os, random


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))

    def ask(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(str(w)), str(w).encode()) for w in words))
        return self.socket.recv(1000).decode()

    def acquire(self, key, lease):
        self.key, self.token = key, str(random.random())
        return self.ask("SET", key, self.token, "NX", "PX", int(lease * 1000))[0] == "+"

    def ours(self): return self.token in self.ask("GET", self.key)

    def extend(self, lease): return self.ours() and self.ask("PEXPIRE", self.key, int(lease * 1000)) == ":1\r\n"

    def release(self): return (not os.environ.get("RIGHT") or self.ours()) and self.ask("DEL", self.key) == ":1\r\n"
