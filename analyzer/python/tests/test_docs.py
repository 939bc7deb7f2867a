# SPDX-License-Identifier: MIT OR Apache-2.0
"""The examples run, the types hold, and so does the notebook."""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nbclient
import nbformat
import polars
from samples import ROOT

import mostrace

PYTHON = ROOT / "analyzer" / "python"
NOTEBOOKS = sorted((PYTHON / "notebooks").glob("*.ipynb"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Examples(unittest.TestCase):
    """They name the samples from the root of the repository."""

    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(ROOT)

    def test_the_examples_of_the_code_run(self):
        names = {"read": mostrace.read, "diff": mostrace.diff, "polars": polars, "MostraceError": mostrace.MostraceError}
        modules = [mostrace.__name__, *(f"mostrace.{module.name}" for module in pkgutil.iter_modules(mostrace.__path__))]
        results = [doctest.testmod(importlib.import_module(name), extraglobs=names, optionflags=OPTIONS) for name in modules]
        self.assertEqual(sum(result.failed for result in results), 0)
        self.assertGreater(sum(result.attempted for result in results), 25)

    def test_everything_public_is_described(self):
        public = [getattr(mostrace, name) for name in mostrace.__all__]
        members = [member for each in public if isinstance(each, type) for member in vars(each).items()]
        methods = [(name, member) for name, member in members if not name.startswith("_")]
        described = [*((each.__name__, each) for each in public), *methods]
        lacking = [name for name, each in described if callable(each) or isinstance(each, property) if not each.__doc__]
        self.assertEqual(lacking, [])

    def test_the_code_of_the_pages_runs(self):
        for page in (PYTHON / "README.md", ROOT / "docs" / "PYTHON.md"):
            blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
            self.assertTrue(blocks, page.name)
            # What needs root or a ledger is not run here.
            lines = [line for block in blocks for line in block.splitlines() if "# not run" not in line]
            with tempfile.TemporaryDirectory() as folder:
                code = "\n".join(lines).replace("chart.", f"{folder}/chart.").replace("run.html", f"{folder}/run.html")
                exec(compile(code, str(page), "exec"), {})


class Types(unittest.TestCase):
    def mypy(self, *args):
        checked = subprocess.run([sys.executable, "-m", "mypy", *args], cwd=PYTHON, capture_output=True, text=True)
        return checked.returncode, checked.stdout + checked.stderr

    def test_the_package_is_typed(self):
        status, told = self.mypy()
        self.assertEqual(status, 0, told)

    def test_its_callers_see_the_types(self):
        code = (
            "import mostrace\n"
            "run = mostrace.read('x')\n"
            "reveal_type(run.events())\n"
            "reveal_type(run.pandas.events())\n"
            "reveal_type(run.arrow.requests())\n"
            "reveal_type(run.plot.icicle())\n"
            "run.evnts()\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            caller = Path(folder) / "caller.py"
            caller.write_text(code)
            _, told = self.mypy(str(caller))
        for kind in ("polars.dataframe.frame.DataFrame", "pandas.", "pyarrow.", "LayerChart", '"evnts"'):
            self.assertIn(kind, told)


class Notebooks(unittest.TestCase):
    def test_they_run(self):
        self.assertTrue(NOTEBOOKS)
        for path in NOTEBOOKS:
            notebook = nbformat.read(path, as_version=4)
            # What a run prints is not kept in git.
            self.assertFalse([cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")], path)
            nbformat.validate(notebook)
            nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
            shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
            text = nbformat.writes(notebook)
            self.assertIn("every figure is the page's", text)
            self.assertTrue([each for each in shown if "vega" in str(each.get("data", {}))], path)


if __name__ == "__main__":
    unittest.main()
