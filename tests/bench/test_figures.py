from pathlib import Path

from bench.figures import Figure

FIGURE = Figure(
    "paper0-fig1", "Delay by rate", "tuples/s", "seconds", {"a": [(5, 0.1), (10, 0.2)], "b": [(10, 3)]}, log_y=True
)


def test_a_figure_is_drawn_twice_alike(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    names = [path.name for path in FIGURE.draw(first)]
    FIGURE.draw(second)
    assert names == ["paper0-fig1.png", "paper0-fig1.svg"]
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_a_figure_is_a_table_with_a_line_per_x() -> None:
    shown = FIGURE.table()
    assert shown.row_count == 2
    assert [list(column.cells) for column in shown.columns] == [["5", "10"], ["0.1", "0.2"], ["", "3"]]
