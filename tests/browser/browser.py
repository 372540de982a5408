"""A headless Chromium that shows one page at a time, by the DevTools protocol over a pair of pipes."""

import json
import os
import select
import subprocess
import tempfile
import time

COMMANDS, ANSWERS = 3, 4  # the descriptors that --remote-debugging-pipe reads and writes


class Browser:
    def __init__(self, limit=60):
        """`limit`: seconds that each answer, and each wait, may take."""
        self.limit = limit
        self.number = 0
        self.unread = b""
        self.events = []
        self.profile = tempfile.TemporaryDirectory(prefix="fleetrun-browser-", ignore_cleanup_errors=True)
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()

        def place_pipes():
            # Not yet at the wanted numbers: one may have the number that the other is to get.
            commands, answers = os.dup(read_commands), os.dup(write_answers)
            os.dup2(commands, COMMANDS)
            os.dup2(answers, ANSWERS)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(read_commands)
        os.close(write_answers)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def close(self):
        os.close(self.commands)  # at which Chromium ends
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.profile.cleanup()

    def ask(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        end = time.monotonic() + self.limit
        while True:
            answer = self.read(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def read(self, end):
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def open(self, address):
        """Returns when all of it is drawn."""
        self.events.clear()
        answer = self.ask("Page.navigate", url=address)
        if "errorText" in answer:
            raise RuntimeError(f"{address}: {answer['errorText']}")
        self.wait(lambda: self.value("document.readyState") == "complete", "the page is loaded")
        self.value("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))")

    def value(self, expression):
        """What JavaScript gets for the expression."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']['text']}")
        return answer["result"].get("value")

    def text(self):
        return self.value("document.body.innerText")

    def wait(self, condition, what):
        end = time.monotonic() + self.limit
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not in {self.limit} s: {what}; the page:\n{self.text()}")
            time.sleep(0.05)

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def prefer(self, scheme):
        """light or dark"""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self):
        """What the console shows of errors and warnings since the page was opened."""
        self.value("0")  # whatever came before this answer is in self.events
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            if event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """The addresses that the page asked for, itself included."""
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
