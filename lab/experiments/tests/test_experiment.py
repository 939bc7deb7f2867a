# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of what experiment.py calculates: python3 -m unittest discover lab/experiments/tests"""

import math
import pathlib
import sys
import tempfile
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import experiment
from experiment import Definition, Results, Wrong

GOOD = """name = 'n'
command = 'app --j {journal} {op}'
[fixed]
size = '64M'
[matrix]
op = ['insert', 'delete']
journal = ['wal', 1]
"""
CLAIM = """[[published]]
where = { journal = 'wal' }
figure = 'writes'
value = 1
source = 's'
to = { op = 'delete' }
control = { size = '32M' }
why = 'smaller'
"""
CLAIMS = """name = 'n'
command = 'app {a} {b}'
[fixed]
b = '1'
[matrix]
a = ['x', 'y']
[[published]]
figure = 'writes'
value = 10
tolerance_percent = 10
source = 's'
control = { b = '2' }
why = 'because'
[[published]]
where = { a = 'x' }
figure = 'journal_writes_percent'
at_least = 50
source = 's'
[[ours]]
where = { a = 'y' }
figure = 'writes'
at_most = 30
besides = 2
source = 's'
"""


def parse(text):
    return Definition(tomllib.loads(text))


def figures(**given):
    return {**dict.fromkeys(experiment.SUMS, 0), "transactions_sure": "exact", "layers": {}, "causes": {}, **given}


class Cells(unittest.TestCase):
    def test_they_are_in_the_order_of_the_file(self):
        definition = parse(GOOD)
        self.assertEqual(definition.parameters, ["op", "journal"])
        keys = [cell.key for cell in definition.cells]
        expected = ["op=insert journal=wal", "op=insert journal=1", "op=delete journal=wal", "op=delete journal=1"]
        self.assertEqual(keys, expected)

    def test_words_are_filled_and_empty_ones_go(self):
        values = {"a": "1 2", "b": ""}
        self.assertEqual(experiment.filled("x {a} --b={b} {b}", values), ["x", "1", "2", "--b="])
        self.assertEqual(experiment.filled(["sh -c", "{a}", "{b}"], values), ["sh -c", "1 2"])

    def test_a_claim_has_control_cells_beside_the_matrix(self):
        definition = parse(GOOD + CLAIM)
        controls = [cell for cell in definition.cells if cell.control]
        # The claim is about a ratio; the cell that is compared with itself adds no control cell.
        keys = ["op=insert journal=wal size=32M", "op=delete journal=wal size=32M"]
        self.assertEqual([cell.key for cell in controls], keys)
        self.assertEqual(controls[0].filesystem["size"], "32M")
        [claim] = definition.claims
        self.assertIs(definition.control_of(claim, definition.cells[0]), controls[0])
        self.assertIsNone(definition.control_of(claim, definition.cells[1]), "no claim is on it")
        self.assertIs(definition.beside(controls[0], claim.to), controls[1])
        self.assertEqual(definition.identity, parse(GOOD).identity, "claims do not change what is measured")

    def test_results_per_commit_are_none_per_transaction(self):
        self.assertNotEqual(parse(GOOD).identity, parse(GOOD.replace("[fixed]", "per = 'commit'\n[fixed]")).identity)

    def test_what_is_wrong_is_said(self):
        for before, after, says in [
            ("{op}", "", "`op` is not used in the command"),
            ("{op}", "{op} {x}", "{x} is neither in [fixed] nor in [matrix]"),
            ("size = '64M'", "op = 'x'", "`op` is in [fixed] and in [matrix]"),
            ("['wal', 1]", "[]", "its matrix has no cell"),
            ("['wal', 1]", "'wal'", "matrix.journal: is not a list of texts and numbers"),
            ("name = 'n'", "nam = 'n'", "the file: unknown field `nam`"),
            ("[fixed]", "per = 'page'\n[fixed]", "per: `page` is neither transaction nor commit"),
            ("[fixed]", "repeat.most = 21\n[fixed]", "repeat.most: a cell is measured at least once and at most 20 times"),
            ("control = { size = '32M' }\n", "", "published: `why` and `control` must be given together"),
            ("why = 'smaller'", "", "published: `why` and `control` must be given together"),
            ("{ size =", "{ op =", "published: control: `op` is not in [fixed]"),
            ("to = { op = 'delete'", "to = { x = 'y'", "published: `x` is not a parameter of the matrix"),
            ("value = 1\n", "", "published: writes: nothing is claimed"),
        ]:
            with self.subTest(says), self.assertRaises(Wrong) as raised:
                parse((GOOD + CLAIM).replace(before, after))
            self.assertEqual(str(raised.exception), says)


class Repeats(unittest.TestCase):
    def test_quantiles_leave_five_per_cent_outside(self):
        """With t = √n · tan θ, the density of Student's t is that of cosⁿ⁻¹ θ; it is integrated by Simpson's rule."""

        def integral(degrees, to, steps=2000):
            step = to / steps
            weight = lambda n: 1 if n in (0, steps) else 4 if n % 2 else 2
            return sum(weight(n) * math.cos(n * step) ** (degrees - 1) for n in range(steps + 1)) * step / 3

        for degrees, quantile in enumerate(experiment.QUANTILES, 1):
            inside = integral(degrees, math.atan(quantile / math.sqrt(degrees))) / integral(degrees, math.pi / 2)
            # The table has three digits after the decimal point.
            self.assertAlmostEqual(inside, 0.95, delta=5e-5)

    def test_intervals_of_known_samples(self):
        # The standard deviation is 1 and the mean is 2: 4.303 / √3 / 2.
        self.assertAlmostEqual(experiment.half_width_percent([1, 2, 3]), 124.217, places=3)
        # The standard deviation is √2.5 and the mean is 10: 2.776 · √(2.5 / 5) / 10.
        self.assertAlmostEqual(experiment.half_width_percent([8, 9, 10, 11, 12]), 19.629, places=3)
        self.assertEqual(experiment.half_width_percent([0, 0, 0]), 0)
        self.assertIsNone(experiment.half_width_percent([7]))

    def test_enough_is_when_the_mean_is_known_or_patience_ends(self):
        is_enough = parse(GOOD).is_enough
        self.assertFalse(is_enough([100, 100]), "three at least")
        self.assertTrue(is_enough([100, 100, 100]))
        # The half width is 2.48 % with three values of standard deviation 1, and 1.84 % with four.
        self.assertFalse(is_enough([99, 100, 101]))
        self.assertTrue(is_enough([99, 100, 101, 100]))
        wide = [100, 200] * 10
        self.assertFalse(is_enough(wide[:19]))
        self.assertTrue(is_enough(wide), "20 at most")


class Verdicts(unittest.TestCase):
    def judged(self, *counts):
        definition = parse(CLAIMS)
        with tempfile.TemporaryDirectory() as folder:
            results = Results(pathlib.Path(folder, "n.jsonl"), definition, to_write=True)
            for cell, writes in zip(definition.cells, counts):
                results.add(cell, figures(transactions=1, writes=writes, journal_writes=6))
            results.file.close()
        return list(experiment.judged(definition, results))

    def test_a_reason_is_told_where_the_control_cell_shows_it(self):
        # The cells are x and y of the matrix, and their control cells.
        verdicts = self.judged(11, 20, 99, 9)
        told = [(row["cell"], row["verdict"], row["control_ours"], row["why"]) for _, row in verdicts]
        self.assertEqual(
            told,
            [
                ("a=x", "agrees", 99, None),
                ("a=y", "differs", 9, "because"),
                ("a=x", "agrees", None, None),
                ("a=y", "agrees", None, None),
            ],
        )
        claimed = [row["claimed"] for _, row in verdicts]
        self.assertEqual(claimed, ["10", "10", "at least 50", "at most 30 and 2 in each run"])
        for counts in [(11, 20, 9, 99), (11, 20)]:
            self.assertEqual(self.judged(*counts)[1][1]["why"], "not known")

    def test_claims_are_counted_by_whose_they_are_and_once_each(self):
        verdicts = self.judged(11, 20, 99, 9)
        self.assertEqual(experiment.tally("published", verdicts), "1 of 2", "one of its two cells differs")
        self.assertEqual(experiment.tally("ours", verdicts), "1 of 1")


class Layers(unittest.TestCase):
    def test_the_parts_are_all_that_was_written(self):
        columns = [experiment.LAYERS[name] for name in experiment.COLUMNS]
        names = [*columns, "directories", "SQLite's index of the WAL", "SQLite's super-journal"]
        layers = {name: 1 << at for at, name in enumerate(names)}
        definition = parse("name = 'n'\ncommand = 'app {a}'\n[matrix]\na = [1]\n")
        results = Results("/nonexistent", definition, to_write=False)
        results.runs["a=1"] = [figures(transactions=2, write_bytes=1023, layers=layers)]
        [row] = experiment.table(definition, results)
        # The last three layers have no column of their own.
        self.assertEqual(row["rest_bytes"], 448)
        self.assertEqual(sum(row[f"{name}_bytes"] for name in experiment.COLUMNS) + row["rest_bytes"], row["write_bytes"])
        self.assertEqual((row["journal_bytes"], row["unknown_bytes"], row["wal_bytes"]), (0.5, 32, 8))

    def test_they_are_the_answers_whatever_the_filesystem(self):
        def owner(**parts):
            return {"device": {"name": "device", "parts": [{"name": name, "bytes": n} for name, n in parts.items()]}}

        tree = {"owners": [owner(**{"ext4's journal": 2, "SQLite's WAL": 3}), owner(**{"ext4's journal": 5}), owner()]}
        named = {"SQLite's WAL": 3, "the filesystem's journal": 7}
        self.assertEqual(experiment.layers(tree, "ext4"), named)


if __name__ == "__main__":
    unittest.main()
