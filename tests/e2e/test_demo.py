"""The demo as a pipeline sees it: without a terminal, to the end of its story."""

import subprocess

from process import drydock


def test_the_demo_runs_to_its_end_and_sums_up(tmp_path):
    result = subprocess.run([drydock(), "demo"], capture_output=True, text=True, timeout=90,
                            stdin=subprocess.DEVNULL, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr[-4000:]
    assert "\x1b" not in result.stdout, "no colours or cursor movements without a terminal"
    lines = result.stdout.strip().splitlines()
    assert len(lines) >= 3
    assert any("node" in line for line in lines[-5:]), "a summary closes it"
