"""What a person sees in a browser: the page of a run after its end and while it goes on, and the curves of several runs.

usage: browser_test.py FOLDER_OF_FLEETRUN [unittest's arguments]
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from browser import Browser

FLEETRUN = ""
LARGEST_PAGE = 2_000_000  # bytes
PHONE = (360, 740)
DESKTOP = (1280, 900)


def job(epochs=2, **train):
    return {
        "model": {"name": "mlp", "hidden": [8]},
        "data": {"train": {"format": "synthetic", "samples": 800, "shape": [1, 4, 4], "classes": 4},
                 "test": {"format": "synthetic", "samples": 80, "shape": [1, 4, 4], "classes": 4}, "batch_size": 8},
        "optimizer": {"name": "sgd", "learning_rate": 0.01},
        "train": {"epochs": epochs, "log_every": 10, **train},
    }


class BrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fleetrun-browser-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.browser.size(*DESKTOP)
        self.browser.prefer("light")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_of(self, *words, code=0):
        result = subprocess.run([FLEETRUN, "--device=cpu", *words], cwd=self.folder, capture_output=True, text=True, timeout=200,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)

    def train(self, words=(), **settings):
        self.write("job.json", json.dumps(job(**settings)))
        self.run_of(*words, "job.json")

    def open_page(self, folder="log"):
        self.browser.open(f"file://{self.folder}/{folder}/report.html")

    def count(self, selector):
        return self.browser.value(f"document.querySelectorAll({json.dumps(selector)}).length")

    def rows_of_ranks(self):
        return self.browser.value(
            "[...document.querySelectorAll('section')].find(s => s.querySelector('h2').innerText.startsWith('Ranks'))"
            ".querySelectorAll('tr').length - 1")


class AfterTheEnd(BrowserTest):
    def test_a_training_has_curves_times_and_its_job(self):
        for ranks in (1, 8):
            with self.subTest(ranks=ranks):
                self.train([f"--nproc_per_node={ranks}", f"--log_dir=log{ranks}"])
                self.open_page(f"log{ranks}")
                text = self.browser.text()
                for wanted in ("finished", "Goodput", "Ranks", "loss", "accuracy", "learning rate", "samples", "model.name",
                               "history.csv", "workerlog.0", "job.json"):
                    self.assertIn(wanted.lower(), text.lower())
                self.assertEqual(self.rows_of_ranks(), ranks)
                self.assertGreaterEqual(self.count("svg.chart polyline"), 4)
                self.assertEqual(self.browser.complaints(), [])
                self.assertEqual(len(self.browser.requests()), 1)  # the file itself

    def test_defaults_are_folded(self):
        self.train()
        self.open_page()
        self.assertNotIn("train.seed", self.browser.text())
        self.browser.value("document.querySelector('#defaults summary').click()")
        self.assertIn("train.seed", self.browser.text())

    def test_it_fits_a_phone_and_follows_the_colour_scheme(self):
        self.train(["--nproc_per_node=8"])
        self.browser.size(*PHONE)
        self.open_page()
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), PHONE[0])
        background = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.value(background)
        self.browser.prefer("dark")
        self.assertNotEqual(self.browser.value(background), light)

    def test_the_pointer_shows_the_values_of_a_step(self):
        self.train()
        self.open_page()
        x, y = self.browser.value("(b => [b.left + b.width / 2, b.top + b.height / 2])"
                                  "(document.querySelector('svg.chart').getBoundingClientRect())")
        self.browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.assertRegex(self.browser.value("document.querySelector('output').innerText"), r"^step \d+ ")

    def test_a_failure_has_its_cause_and_a_log_stays_text(self):
        markup = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
        self.write("train.py", f"import os\nprint({markup!r})\n"
                   f"if os.environ['RANK'] == '1': raise RuntimeError({markup!r})\nimport signal\nsignal.pause()\n")
        for ranks in (2, 8):
            with self.subTest(ranks=ranks):
                self.run_of(f"--nproc_per_node={ranks}", "--grace=0.2", f"--log_dir=log{ranks}", "train.py", code=1)
                self.open_page(f"log{ranks}")
                text = self.browser.text()
                for wanted in ("ended with code 1", "Cause:", "rank 1", "RuntimeError: " + markup, "Last lines of its log"):
                    self.assertIn(wanted, text)
                self.assertEqual(self.rows_of_ranks(), ranks)
                self.assertEqual(self.count("tr.primary"), 1)
                self.assertEqual(self.count("script"), 1)  # its own
                self.assertEqual(self.count("img"), 0)
                self.assertNotEqual(self.browser.value("document.title"), "taken")
                self.assertEqual(self.browser.complaints(), [])

    def test_twenty_thousand_steps(self):
        self.train(["--nproc_per_node=2"], epochs=400, log_every=1)
        with open(os.path.join(self.folder, "log/history.csv"), encoding="utf-8") as file:
            self.assertGreater(sum(1 for _ in file), 20_000)
        self.assertLessEqual(os.path.getsize(os.path.join(self.folder, "log/report.html")), LARGEST_PAGE)
        self.open_page()
        took = self.browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"20,000 steps: {os.path.getsize(os.path.join(self.folder, 'log/report.html'))} bytes, loaded in {took:.0f} ms")
        self.assertGreaterEqual(self.count("svg.chart polyline"), 4)
        self.assertEqual(self.browser.complaints(), [])

    def test_the_curves_of_two_runs_lie_over_each_other(self):
        for rate in ("0.01", "0.1"):
            self.write("job.json", json.dumps(job()))
            self.run_of(f"--log_dir=rate{rate}", "job.json", f"optimizer.learning_rate={rate}")
        subprocess.run([FLEETRUN, "plot", "-o", "both.svg", "rate0.01", "rate0.1"], cwd=self.folder, check=True, timeout=60)
        self.browser.open(f"file://{self.folder}/both.svg")
        names = self.browser.value("[...document.querySelectorAll('text')].map(t => t.textContent).join('\\n')")
        for wanted in ("rate0.01", "rate0.1", "Loss"):
            self.assertIn(wanted, names)
        self.assertGreaterEqual(self.count("polyline"), 4)
        self.assertEqual(self.browser.complaints(), [])


class WhileItGoesOn(BrowserTest):
    def setUp(self):
        super().setUp()
        self.write("job.json", json.dumps(job(epochs=10**6)))
        self.run_process = subprocess.Popen([FLEETRUN, "--device=cpu", "--nproc_per_node=2", "--grace=1", "job.json"],
                                            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end_run)
        self.browser.wait(lambda: os.path.exists(os.path.join(self.folder, "log/history.csv")), "the training has begun")
        self.watch = subprocess.Popen([FLEETRUN, "watch"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end_watch)
        self.address = re.search(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", self.watch.stdout.readline()).group()

    def end_run(self):
        self.run_process.send_signal(signal.SIGINT)
        self.run_process.wait(60)

    def end_watch(self):
        self.watch.terminate()
        self.watch.wait(20)
        self.watch.stdout.close()

    def test_the_page_follows_the_run_without_a_reload(self):
        self.browser.open(self.address)
        self.browser.wait(lambda: "running" in self.browser.text(), "the run is shown")
        self.browser.value("window.mark = 'the same page'; 0")
        before = self.browser.text()
        self.browser.wait(lambda: self.browser.text() != before, "the page changes")
        self.end_run()
        self.browser.wait(lambda: "ended with code 130" in self.browser.text(), "the end of the run is shown")
        self.assertEqual(self.browser.value("window.mark"), "the same page")
        self.assertEqual(self.browser.complaints(), [])
        self.assertTrue(all(address.startswith(self.address) for address in self.browser.requests()), self.browser.requests())

    def test_a_log_opens_from_the_page(self):
        self.browser.open(self.address)
        self.browser.wait(lambda: self.count("a[href='workerlog.1']") > 0, "the log is linked")
        self.browser.open(self.address + "workerlog.1")
        self.assertRegex(self.browser.text(), r"\[Epoch \d+")

    def test_who_does_not_know_the_token_gets_nothing(self):
        root = self.address.rsplit("/", 2)[0]
        for path in ("/", "/report.html", "/" + "0" * 32 + "/", "/" + "0" * 32 + "/workerlog.0"):
            with self.subTest(path=path), self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(root + path, timeout=20)
            self.assertEqual(refused.exception.code, 403)
            refused.exception.close()


if __name__ == "__main__":
    FLEETRUN = os.path.join(os.path.abspath(sys.argv.pop(1)), "fleetrun")
    unittest.main(verbosity=2)
