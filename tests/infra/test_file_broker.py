"""The queue in a folder loses nothing, doubles nothing, and keeps the order."""

import multiprocessing
import time
from collections import Counter
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty

import pytest
from kombu import Connection
from kombu.simple import SimpleQueue

WRITERS, READERS, MESSAGES = 3, 3, 12_000
TRANSPORT = "llmgw_admin.file_broker:Transport"


def connect(folder: Path) -> Connection:
    options = {"folder": str(folder), "polling_interval": 0.01}
    return Connection("filesystem://localhost", transport=TRANSPORT, transport_options=options)


def write(folder: Path, writer: int) -> None:
    with connect(folder) as connection, SimpleQueue(connection.channel(), "work") as queue:
        for number in range(MESSAGES // WRITERS):
            queue.put([writer, number], serializer="json")


def read(folder: Path, out: Path, done: Event) -> None:
    with (
        connect(folder) as connection,
        SimpleQueue(connection.channel(), "work") as queue,
        out.open("w") as file,
    ):
        while True:
            ended = done.is_set()  # asked before looking: what was written before is then seen
            try:
                message = queue.get(timeout=0.1)
            except Empty:
                if ended:
                    return
                continue
            file.write(f"{message.payload}\n")
            message.ack()


def test_three_writers_and_three_readers_deliver_every_message_once(tmp_path):
    folder = tmp_path / "queue"
    folder.mkdir()
    spawn = multiprocessing.get_context("spawn")
    done = spawn.Event()
    writers = [spawn.Process(target=write, args=(folder, number)) for number in range(WRITERS)]
    outs = [tmp_path / f"out-{number}" for number in range(READERS)]
    readers = [spawn.Process(target=read, args=(folder, out, done)) for out in outs]
    for process in readers + writers:
        process.start()
    for process in writers:
        process.join(120)
    done.set()
    for process in readers:
        process.join(120)
    assert [process.exitcode for process in writers + readers] == [0] * (WRITERS + READERS)
    counts = Counter(line for out in outs for line in out.read_text().splitlines())
    wanted = {str([writer, number]) for writer in range(WRITERS) for number in range(MESSAGES // WRITERS)}
    assert counts == Counter(dict.fromkeys(wanted, 1))
    assert list(folder.iterdir()) == []


@pytest.fixture
def queue(tmp_path):
    with connect(tmp_path) as connection, SimpleQueue(connection.channel(), "work") as queue:
        yield queue


def test_what_came_first_goes_first(queue):
    for number in range(20):
        queue.put(number, serializer="json")
    assert len(queue) == 20
    assert [queue.get(timeout=1).payload for _ in range(20)] == list(range(20))


def test_a_message_that_is_still_being_written_is_not_seen(queue, tmp_path):
    (tmp_path / f"{time.time_ns()}_x.work.msg.draft").write_text("{")
    assert len(queue) == 0
    with pytest.raises(Empty):
        queue.get(timeout=0.1)


def test_a_message_that_was_taken_but_not_acknowledged_comes_back_when_its_reader_leaves(tmp_path):
    with connect(tmp_path) as connection, SimpleQueue(connection.channel(), "work") as queue:
        queue.put("again", serializer="json")
        assert queue.get(timeout=1).payload == "again"
    with connect(tmp_path) as connection, SimpleQueue(connection.channel(), "work") as queue:
        assert queue.get(timeout=1).payload == "again"


def test_queues_in_one_folder_are_apart_and_can_be_emptied(tmp_path, queue):
    queue.put(1, serializer="json")
    with connect(tmp_path) as connection, SimpleQueue(connection.channel(), "other") as other:
        assert len(other) == 0
        assert queue.clear() == 1
    assert len(queue) == 0
