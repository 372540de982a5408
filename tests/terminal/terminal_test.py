"""What a person sees at a terminal: job control in a real bash, kinds and widths of terminals, redirections.

usage: terminal_test.py FOLDER_OF_FLEETRUN [unittest's arguments]
"""

import json
import os
import re
import sys
import tempfile
import unittest

from screen import PROMPT, Screen

CTRL_C, CTRL_Z = "\x03", "\x1a"
ERASE = "\x1b[K"
LINE = r"\x1b\[K([^\r\x1b]*)(?=\r(?!\n)|\x1b|$)"  # of the progress: no line end follows it
DRAWN = r"(?:training|waiting for data)  epoch 0(?: of 0-\d+)?  step \d+/\d+  loss"
BINARIES = ""


def job(samples, epochs=1, **train):
    return {
        "model": {"name": "mlp", "hidden": [8]},
        "data": {"train": {"format": "synthetic", "samples": samples, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8, "shuffle": False},
        "optimizer": {"name": "sgd", "learning_rate": 0.001},
        # One thread, since two would do little but wake each other in steps as short as these.
        "train": {"epochs": epochs, "threads": 1, "log_every": 1000000000, **train},
    }


class TerminalTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fleetrun-terminal-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("endless.json", json.dumps(job(samples=10**8, epochs=10**5)))
        self.write("short.json", json.dumps(job(samples=10**6)))  # 2 to 5 s

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def screen(self, environment=None, **size):
        variables = {"PATH": BINARIES + ":" + os.environ["PATH"], **(environment or {})}
        screen = Screen(self.folder, environment=variables, **size)
        self.addCleanup(screen.__exit__)
        return screen

    def end(self, screen):
        """Ctrl-C to what runs in the foreground; the screen then ends with a prompt."""
        before = len(screen.raw)
        screen.type(CTRL_C)
        screen.wait_for_prompt(before)
        self.assertRegex(screen.last_line(), r"^(\^C)?" + PROMPT.rstrip() + "$")  # ^C: of a run that wrote nothing here
        self.assertEqual(screen.code(), 130)


class JobControl(TerminalTest):
    def test_ctrl_z_leaves_the_terminal_to_the_shell(self):
        screen = self.screen()
        screen.command("fleetrun --device cpu endless.json")
        screen.wait_for(DRAWN)
        screen.type(CTRL_Z)
        screen.wait_for(r"Stopped.*\r\n" + PROMPT)
        quiet = len(screen.raw)
        screen.look(1.5)  # in which the line was drawn three times before
        self.assertEqual(screen.raw[quiet:], "")
        self.assertEqual(screen.last_line(), PROMPT.rstrip())
        self.assertEqual(screen.run("echo still here")[-2:], ["still here", PROMPT.rstrip()])
        again = len(screen.raw)
        screen.command("fg")
        screen.wait_for(DRAWN, since=again)
        self.end(screen)

    def test_bg_goes_on_without_drawing_and_fg_draws(self):
        screen = self.screen()
        screen.command("fleetrun --device cpu endless.json")
        screen.wait_for(r"\[Epoch 0, batch 0\]")  # later it would stand behind a prompt
        screen.wait_for(DRAWN, since=len(screen.raw))
        screen.type(CTRL_Z)
        screen.wait_for(r"Stopped.*\r\n" + PROMPT)
        background = len(screen.raw)
        screen.run("bg")
        screen.look(1.5)
        self.assertNotIn("\x1b", screen.raw[background:])
        self.assertRegex("\n".join(screen.run("jobs")), r"\[1\]\+\s+Running")
        again = len(screen.raw)
        screen.command("fg")
        screen.wait_for(DRAWN, since=again)
        self.end(screen)

    def check_start_in_background(self, preparation):
        screen = self.screen()
        screen.run(preparation)
        screen.command("fleetrun --device cpu endless.json &")
        screen.wait_for("joined 1 rank")
        screen.look(1.5)
        self.assertNotIn("\x1b", screen.raw)
        self.assertRegex("\n".join(screen.run("jobs")), r"\[1\]\+\s+Running")
        again = len(screen.raw)
        screen.command("fg")
        screen.wait_for(DRAWN, since=again)
        self.end(screen)

    def test_start_in_the_background(self):
        self.check_start_in_background("true")

    def test_start_in_the_background_with_tostop(self):
        self.check_start_in_background("stty tostop")

    def test_what_ranks_wrote_before_ctrl_z_waits_for_fg(self):
        self.write("chatty.sh", "i=0; while :; do i=$((i + 1)); echo line $i; sleep 0.01; done\n")
        screen = self.screen()
        screen.command("fleetrun sh chatty.sh")
        screen.wait_for("line 20")
        screen.type(CTRL_Z)
        screen.wait_for(r"Stopped.*\r\n" + PROMPT)
        quiet = len(screen.raw)
        screen.look(1)
        self.assertEqual(screen.raw[quiet:], "")
        screen.command("fg")
        screen.wait_for(r"line \d+\r\n(?s:.*)line \d+\r\n", since=quiet)
        self.end(screen)
        numbers = [int(number) for number in re.findall(r"line (\d+)\r\n", screen.raw)]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))

    def test_stop_of_a_suspended_run(self):
        screen = self.screen()
        screen.command("fleetrun sh -c 'echo up; sleep 100'")
        screen.wait_for("up\r\n")
        screen.type(CTRL_Z)
        screen.wait_for(r"Stopped.*\r\n" + PROMPT)
        self.assertRegex("\n".join(screen.run("fleetrun stop")), "\nstopped default-")


class Kinds(TerminalTest):
    def check_plain(self, environment):
        screen = self.screen(environment)
        screen.command("fleetrun --device cpu endless.json")
        screen.wait_for("joined 1 rank")
        screen.look(1.5)
        self.end(screen)
        self.assertNotIn("\x1b", screen.raw)

    def test_dumb(self):
        self.check_plain({"TERM": "dumb"})

    def test_without_a_name(self):
        self.check_plain({"TERM": None})

    def test_warnings_are_red(self):
        for environment, red in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            screen = self.screen(environment)
            screen.command("fleetrun --device cpu --env RANK=7 endless.json")
            screen.wait_for("joined 1 rank")
            self.end(screen)
            self.assertIn("fleetrun: warning: --env RANK has no effect", screen.raw)
            self.assertEqual("\x1b[31mfleetrun: warning:" in screen.raw, red)

    def check_colours(self, environment, coloured):
        """Of a rank prefix, a cause and a hint."""
        screen = self.screen(environment)
        screen.run("fleetrun --nproc_per_node=2 --console=all sh -c 'echo says $PADDLE_TRAINER_ID; sleep 0.5; exit 3' | cat" if environment.get("CLICOLOR_FORCE")
                   else "fleetrun --nproc_per_node=2 --console=all sh -c 'echo says $PADDLE_TRAINER_ID; sleep 0.5; exit 3'")
        screen.run("fleetrun --bannr=short sh -c true")
        for text in (r"\x1b\[33m\[1\] \x1b\[0msays 1", r"\x1b\[31mfleetrun: rank \d exited with code 3", r"\x1b\[36m  hint: "):
            self.assertEqual(bool(re.search(text, screen.raw)), coloured, (environment, text, screen.raw))

    def test_prefixes_causes_and_hints_have_colours_where_the_user_wants_them(self):
        self.check_colours({}, True)
        self.check_colours({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True)
        for environment in ({"NO_COLOR": "1"}, {"CLICOLOR": "0"}, {"TERM": "dumb"}):
            self.check_colours(environment, False)

    def test_a_progress_bar_of_a_script_is_one_line(self):
        self.write("bar.sh", "for i in 1 2 3 4 5 6 7 8; do printf '\\r%d0%%|####|' $i; sleep 0.3; done; echo; echo end\n")
        for ranks, start in ((1, ""), (2, "[0] ")):
            screen = self.screen()
            screen.run(f"fleetrun --nproc_per_node={ranks} --console=0 --log_prefix='{start}' sh bar.sh")
            self.assertEqual([line for line in screen.lines() if "%|" in line], [start + "80%|####|"])
            self.assertRegex(screen.raw, re.escape(ERASE) + r"(\x1b\[\d+m)?" + re.escape(start) + r"(\x1b\[0m)?[34]0%\|####\|")

    def test_the_banner_fits_a_narrow_terminal(self):
        screen = self.screen(columns=60)
        screen.run("fleetrun --device cpu --nproc_per_node=4 sh -c true")
        table = [line for line in screen.lines() if line.startswith(("|", "+"))]
        self.assertEqual(len(table), 8, screen.lines())
        for line in table:
            self.assertRegex(line, r"^([|+]).*\1$")

    def test_nothing_else_has_a_colour(self):
        for environment in ({}, {"NO_COLOR": "1"}):
            screen = self.screen(environment)
            screen.command("fleetrun --device cpu endless.json")
            screen.wait_for(DRAWN)
            self.end(screen)
            self.assertNotRegex(screen.raw, r"\x1b\[[0-9;]*m")

    def test_widths(self):
        for columns in (20, 40, 66, 80, 200):
            with self.subTest(columns=columns):
                screen = self.screen(columns=columns)
                screen.command("fleetrun --device cpu endless.json")
                screen.wait_for(r"\[Epoch 0, batch 0\]")  # later it could stand where the line is expected
                screen.wait_for(re.escape(ERASE) + r"[^\r]*step \d+", since=len(screen.raw))
                screen.look(1.2)
                drawn = re.findall(LINE, screen.raw)
                self.assertLess(max(len(text) for text in drawn), columns - 2)
                screen.wait(lambda: re.search(r"step \d+", screen.last_line()), "the line")
                self.end(screen)
                self.assertEqual([line for line in screen.lines() if re.search(r"step \d+/", line)], [])

    def test_resize(self):
        screen = self.screen(columns=100)
        screen.command("fleetrun --device cpu endless.json")
        screen.wait_for(DRAWN)
        screen.resize(30)
        screen.look(0.6)  # until the next drawing
        narrow = len(screen.raw)
        screen.wait_for(re.escape(ERASE) + r"[^\r]*step \d+[^\r]*\r", since=narrow)
        drawn = re.findall(LINE, screen.raw[narrow:])
        self.assertLess(max(len(text) for text in drawn), 28)
        self.end(screen)

    def test_nothing_of_the_line_stays_when_the_run_ends(self):
        for flags in ("", "--log_level=ERROR"):
            screen = self.screen()
            before = len(screen.raw)
            screen.command(f"fleetrun --device cpu {flags} short.json")
            screen.wait_for(DRAWN)
            screen.wait_for_prompt(before)
            self.assertEqual(screen.last_line(), PROMPT.rstrip())
            self.assertEqual([line for line in screen.lines() if re.search(DRAWN, line)], [])
            self.assertEqual(screen.code(), 0)


class Redirections(TerminalTest):
    def test_stderr_in_a_file(self):
        screen = self.screen()
        screen.command("fleetrun --device cpu endless.json 2>err.txt")
        screen.wait_for("joined 1 rank")
        screen.look(1.2)
        self.end(screen)
        self.assertNotIn("\x1b", screen.raw)
        self.assertNotIn("\x1b", self.read("err.txt"))
        self.assertIn("stopped by SIGINT", self.read("err.txt"))

    def test_stdout_in_a_file(self):
        screen = self.screen()
        screen.command("fleetrun --device cpu endless.json >out.txt")
        screen.wait_for(DRAWN)
        self.end(screen)
        self.assertNotIn("\x1b", self.read("out.txt"))
        self.assertIn("joined 1 rank", self.read("out.txt"))

    def test_both_in_a_pipe(self):
        screen = self.screen()
        screen.run("(fleetrun --device cpu short.json 2>&1; echo code $?) | cat >all.txt")
        self.assertNotIn("\x1b", screen.raw + self.read("all.txt"))
        self.assertTrue(self.read("all.txt").endswith("code 0\n"), self.read("all.txt")[-300:])

    def test_closed_descriptors(self):
        screen = self.screen()
        for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            screen.run(f"fleetrun sh -c 'cat; exit 3' {redirection}")
            self.assertEqual(screen.code(), 3, redirection)
            self.assertEqual(screen.last_line(), PROMPT.rstrip())

    def test_a_rank_reads_no_key_that_is_typed(self):
        screen = self.screen()
        screen.command("fleetrun sh -c 'echo up; cat; echo got nothing; sleep 1'")
        screen.wait_for("up\r\n")
        screen.command("echo typed")
        screen.wait_for("got nothing")
        screen.wait_for(r"typed\r\n" + PROMPT)


    def test_a_rank_that_opens_the_terminal_itself_is_told(self):
        self.write("ask.sh", "read x < /dev/tty\n")
        screen = self.screen()
        screen.command("fleetrun --banner=none sh ask.sh")
        screen.wait_for("fleetrun: rank 0 has stopped and waits, because it, or a program that it started, uses the terminal; "
                        "--interactive=0 gives it the terminal")
        self.end(screen)


class Interactive(TerminalTest):
    """A rank that has the terminal (--interactive), moved between the background and the foreground."""

    def setUp(self):
        super().setUp()
        self.write("ask.sh", "printf 'in> '; read x; echo got $x\n")

    def check_fg(self, screen):
        """The rank in the background wants the terminal, which suspends the run, as bash would suspend a program of its own."""

        def is_suspended():
            before = len(screen.raw)
            screen.run("jobs")
            return re.search(r"\[1\]\+\s+Stopped", screen.raw[before:])

        screen.wait(is_suspended, "a suspended run")
        before = len(screen.raw)
        screen.command("fg")
        screen.wait_for("fleetrun", before)
        screen.command("typed")
        screen.wait_for("got typed", before)

    def test_fg_gives_it_the_terminal_after_a_start_in_the_background(self):
        screen = self.screen()
        screen.command("fleetrun --banner=none --interactive=0 sh ask.sh &")
        screen.wait_for("in> ")
        self.check_fg(screen)

    def test_fg_gives_it_the_terminal_after_bg(self):
        screen = self.screen()
        screen.command("fleetrun --banner=none --interactive=0 sh ask.sh")
        screen.wait_for("in> ")
        screen.type(CTRL_Z)
        screen.wait_for(r"Stopped.*\r\n" + PROMPT)
        screen.run("bg")
        self.check_fg(screen)


class Completion(TerminalTest):
    def zsh(self, keys, wanted):
        """What zsh makes of these keys, the first that it gets."""
        os.makedirs(os.path.join(self.folder, "functions"), exist_ok=True)
        screen = self.screen()
        screen.run("fleetrun completion zsh > functions/_fleetrun")
        screen.command("zsh -f -i")
        screen.command("PS1='zsh> '; fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D; echo lo''aded")
        screen.wait_for("loaded\r\n")
        before = len(screen.raw)
        screen.type(keys)
        screen.wait(lambda: any(wanted in line for line in screen.lines()), wanted)
        return screen.raw[before:]

    @unittest.skipUnless(os.access("/usr/bin/zsh", os.X_OK), "zsh is not installed")
    def test_the_first_tab_in_zsh(self):
        self.write("my train.py", "")
        os.makedirs(os.path.join(self.folder, "logs of today"))
        for keys, wanted in (("fleetrun --nproc_per\t", "fleetrun --nproc_per_node="),
                             ("fleetrun my\t", "fleetrun my\\ train.py"),
                             ("fleetrun --device=cu\t", "fleetrun --device=cuda"),
                             ("fleetrun --log-dir lo\t", "fleetrun --log-dir logs\\ of\\ today/"),
                             ("fleetrun bench --dtype bf\t", "fleetrun bench --dtype bf16"),
                             ("fleetrun bench --dtype=bf\t", "fleetrun bench --dtype=bf16"),
                             ("fleetrun signal USR\t", "USR2"),
                             ("fleetrun logs --log_dir lo\t", "fleetrun logs --log_dir logs\\ of\\ today/"),
                             ("fleetrun conf\t", "fleetrun config")):
            with self.subTest(keys=keys):
                self.zsh(keys, wanted)

    def test_bash_quotes_a_name_with_a_space(self):
        self.write("my train.py", "")
        screen = Screen(self.folder, environment={"PATH": BINARIES + ":" + os.environ["PATH"]}, editing=True)
        self.addCleanup(screen.__exit__)
        screen.run("fleetrun completion bash > c.bash; . ./c.bash")
        screen.type("fleetrun my\t")
        screen.wait(lambda: screen.last_line().endswith("fleetrun my\\ train.py"), "the name of the file")


if __name__ == "__main__":
    BINARIES = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
