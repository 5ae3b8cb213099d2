"""One instance of the page-view service in Python, with nothing but its standard library.

v1 counts without a lock, v2 under a mutex. The count lives in this process: python3 pageviews.py HOST PORT
"""
import http.server
import sys
import threading
import time

views = {"/v1/pview": 0, "/v2/pview": 0}
mutex = threading.Lock()


def count(path):
    seen = views[path]
    time.sleep(0.001)  # what a program does between reading and writing
    views[path] = seen + 1
    return seen + 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(views[self.path])

    def do_POST(self):
        if self.path == "/v1/pview":
            return self.answer(count(self.path))
        with mutex:
            n = count(self.path)
        self.answer(n)

    def answer(self, n):
        body = b"%d\n" % n
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024  # all visitors come at once


Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
