"""A terminal with a real shell in it: what is typed goes to bash, and the screen says what a person would see."""

import os
import re
import time

import pexpect
import pyte

PATIENCE = 90 * float(os.environ.get("FLEETRUN_TEST_SLOWNESS", "1"))  # s, for what takes a moment on an idle machine
PROMPT = "ready> "


class Screen:
    """`environment` is added to ours; a value of None takes the variable away."""

    def __init__(self, folder, columns=100, rows=40, environment=None, editing=False):
        variables = dict(os.environ, PS1=PROMPT, TERM="xterm", LC_ALL="C.UTF-8", HISTFILE="/dev/null")
        for name in ("NO_COLOR", "PROMPT_COMMAND", "COLUMNS", "LINES"):
            variables.pop(name, None)
        for name, value in (environment or {}).items():
            variables.pop(name, None) if value is None else variables.update({name: value})
        self.columns = columns
        self.raw = ""
        self._screen = pyte.HistoryScreen(columns, rows, history=10000)
        self._stream = pyte.Stream(self._screen)
        self._shell = pexpect.spawn(
            "/bin/bash", ["--norc", "--noprofile", *([] if editing else ["--noediting"]), "-i"], cwd=folder, env=variables, dimensions=(rows, columns),
            encoding="utf-8", codec_errors="replace", echo=True)
        self.wait_for_prompt()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._shell.close(force=True)

    def type(self, text):
        self._shell.send(text)

    def command(self, line):
        """Types a line, and the return key."""
        self.type(line + "\n")

    def run(self, line):
        """The lines that a command leaves on the screen up to the next prompt."""
        before = len(self.raw)
        self.command(line)
        self.wait_for_prompt(before)
        return self.lines()

    def code(self):
        """The exit code of the last command."""
        before = len(self.raw)
        self.command("echo code=$?=")
        self.wait(lambda: re.search(r"code=(\d+)=", self.raw[before:]), "an exit code")
        found = re.search(r"code=(\d+)=", self.raw[before:]).group(1)
        self.wait_for_prompt(before)
        return int(found)

    def resize(self, columns, rows=40):
        self.columns = columns
        self._shell.setwinsize(rows, columns)
        self._screen.resize(rows, columns)

    def look(self, seconds=0.05):
        """Takes what comes within this time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                text = self._shell.read_nonblocking(65536, timeout=left)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.raw += text
            self._stream.feed(text)

    def lines(self):
        """The whole text so far, as a person who scrolls up would see it; empty lines at the end are left out."""
        history = ["".join(row[column].data for column in range(self.columns)) for row in self._screen.history.top]
        lines = [line.rstrip() for line in history + list(self._screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def last_line(self):
        """Of the screen, where the cursor stands."""
        return self._screen.display[self._screen.cursor.y].rstrip()

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() >= end:
                raise AssertionError(f"waited for {what}; the screen:\n" + "\n".join(self.lines()))
            self.look()

    def wait_for(self, pattern, since=0):
        self.wait(lambda: re.search(pattern, self.raw[since:]), pattern)

    def wait_for_prompt(self, since=0):
        self.wait(lambda: PROMPT in self.raw[since:], "the prompt")  # a run in the background may have written after it
