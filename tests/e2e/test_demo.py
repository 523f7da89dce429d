"""The demo as a pipeline sees it: without a terminal, to the end of its story."""

import re
import subprocess

from process import drydock


def test_the_demo_runs_to_its_end_and_sums_up(tmp_path):
    result = subprocess.run([drydock(), "demo"], capture_output=True, text=True, timeout=300,
                            stdin=subprocess.DEVNULL, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    assert "\x1b" not in result.stdout, "no colours or cursor movements without a terminal"
    lines = result.stdout.strip().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any("cannot be drained: shop/payments-" in line for line in lines), "a drain is blocked for a while"
    assert lines[-2] == "24 of 24 nodes serviced; peak 6 in maintenance, 2 a zone (limit 2)"
    assert re.fullmatch(r"\d+ pods moved, 0 evictions refused, 7[2-9] messages, \d failovers?, \dm\d\ds", lines[-1])
