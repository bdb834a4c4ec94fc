"""What was asked for and acknowledged, and whether a store still has it.

A task is known by a key that is part of its arguments, as nobody knows the id
of a task whose creation was not acknowledged.  Its life is a list of states,
each with a mark if it was acknowledged: a time, or a place in a log.  Clients
do one thing at a time to a task, so what is found later must be one of these
states: the last one with a mark, or what was asked for after it.

Of tasks that are "loose", several do things at once, or time does: there only
what was acknowledged is held against what is found.
"""

import collections
import threading

ENDED = ("completed", "failed", "cancelled")
GONE = "gone"

# the first change after a start leaves out so many versions, or more
AHEAD = 1000000

# skipped: it came after such a change, and its version here is not the real one
State = collections.namedtuple(
    "State", "version phase attempt result lease asked skipped",
    defaults=(None, None, 0, None, None, 0, False))

Row = collections.namedtuple("Row", "key id version phase attempt result")


class Entry(list):
    """[state, mark]; begun is when it was asked for"""

    begun = None


def text_of(state):
    if state is None:
        return "nothing"
    return "version %s, %s, attempt %s, %s bytes" % (
        state.version, state.phase, state.attempt,
        "no" if state.result is None else len(state.result))


def is_version(row, state):
    """which versions were left out is known to nginx alone"""

    return row.version > AHEAD and row.version > state.version \
        if state.skipped else row.version == state.version


class Task:
    def __init__(self, key, tool, owner, loose):
        self.key = key
        self.tool = tool
        self.owner = owner
        self.loose = loose
        self.id = None
        self.lease = None
        self.states = []            # of Entry
        self.loaded = None          # the one that nginx started with
        self.changes = 0            # of a loose task, acknowledged
        self.ends = []              # of a loose task: states, likewise

    @property
    def state(self):
        return self.states[-1][0]

    def after(self, state, **change):
        """what follows it"""

        return state._replace(version=state.version + 1,
                              skipped=state.skipped or state is self.loaded,
                              **change)

    def required(self, limit):
        """the index of the last state that must have lasted, or -1"""

        return max((i for i, (_, mark) in enumerate(self.states)
                    if mark is not None and mark <= limit), default=-1)

    def told(self):
        return "%s (%s, id %s): %s" % (
            self.key, self.tool, self.id,
            "; ".join("%s [%s]" % (text_of(state), mark)
                      for state, mark in self.states + self.ends))


class Ledger:
    """of one zone; mark() is when, or where in a log, something was told"""

    def __init__(self, mark):
        self.mark = mark
        self.lock = threading.RLock()
        self.tasks = {}
        self.claims = {}            # (id, attempt): (lease, mark)
        self.lost = 0               # claims that nobody was told of
        self.lost_since = None      # the first mark of what was not found
        self.lost_begun = None      # when the last of that was asked for
        self.wrong = []
        self.acknowledged = 0
        self.serial = 0

    def new(self, prefix, tool, owner, loose):
        with self.lock:
            self.serial += 1
            task = Task("%s%d" % (prefix, self.serial), tool, owner, loose)
            self.tasks[task.key] = task
            task.states.append(self.entry(State(1, "queued", 0)))
            return task

    def entry(self, state):
        entry = Entry([state, None])
        entry.begun = self.mark()
        return entry

    def ask(self, task, **change):
        """the entry of what a request is to make of the task"""

        with self.lock:
            entry = self.entry(task.after(task.state, **change))
            task.states.append(entry)
            return entry

    def done(self, entry):
        with self.lock:
            entry[1] = self.mark()
            self.acknowledged += 1

    def refused(self, task, entry):
        with self.lock:
            task.states.remove(entry)

    def ended(self, task, phase, result, acknowledged):
        """of a loose task, which may end but once"""

        with self.lock:
            mark = self.mark() if acknowledged else None
            task.ends.append([State(None, phase, 0, result), mark])

            if not acknowledged:
                return

            self.acknowledged += 1
            task.changes += 1

            if sum(1 for _, mark in task.ends if mark is not None) > 1:
                self.wrong.append("it ended twice: " + task.told())

    def created(self, task, entry, taskid):
        with self.lock:
            task.id = taskid
            self.done(entry)

    def claimed(self, key, taskid, lease, attempt):
        """the task, which may not have been acknowledged to its creator yet"""

        with self.lock:
            task = self.tasks[key]
            mark = self.mark()
            before = self.claims.get((taskid, attempt))
            self.claims[taskid, attempt] = lease, mark
            self.acknowledged += 1

            if before:
                self.wrong.append("attempt %d was claimed twice: %s"
                                  % (attempt, task.told()))

            task.id = taskid
            task.lease = lease

            if task.loose:
                task.changes += 1
            else:
                task.states.append(Entry([task.after(
                    task.state, phase="running", attempt=attempt,
                    lease=lease), mark]))

            return task

    def restarted(self):
        """when nothing was under way"""

        for task in self.tasks.values():
            task.loaded = task.state

    def forget_claims(self, limit):
        """what was claimed later than this may be claimed again"""

        with self.lock:
            self.claims = {attempt: (lease, mark) for attempt, (lease, mark)
                           in self.claims.items() if mark <= limit}

    def match(self, task, row, limit):
        """the state that it is found in; nothing if it must not be"""

        required = task.required(limit)

        # of some that look the same, it is the last
        states = [state for state, _ in task.states[max(required, 0):]][::-1]

        if row is None:
            gone = [state for state in states if state.phase == GONE]
            return gone[0] if gone else \
                State(phase=GONE) if required == -1 else None

        same = [state for state in states if is_version(row, state)
                and (row.phase, row.attempt, row.result)
                == (state.phase, state.attempt, state.result)]

        if same:
            state = same[0]

            # a task that was released and claimed again has another lease, and
            # there is no telling which of the two claims was lost
            if any(other.lease != state.lease
                   or (state.phase == "input_required"
                       and other.asked != state.asked) for other in same):
                state = state._replace(lease=None)

            return state

        # somebody was about to be told that it is his
        for state in states:
            if (state.phase == "queued" and row.phase == "running"
                    and is_version(row, task.after(state))
                    and row.attempt == state.attempt + 1):
                self.lost -= 1
                return task.after(state, phase="running", attempt=row.attempt,
                                  lease=None)

        return None

    def match_loose(self, task, row, limit):
        required = task.required(limit)
        ends = [state for state, mark in task.ends
                if mark is not None and mark <= limit]

        if row is None:
            gone = any(state.phase == GONE for state, _ in task.ends)
            return gone or required == -1

        if any(state.phase == GONE for state in ends):
            return False

        for state in ends:
            if (state.phase, state.result) != (row.phase, row.result):
                return False

        if row.phase in ENDED:
            return any((state.phase, state.result) == (row.phase, row.result)
                       for state, _ in task.ends)

        return True

    def note_lost(self, task, state):
        """what was acknowledged after the state that it was found in"""

        lost = [entry for entry in task.states if entry[1] is not None
                and entry[0].version > (state.version or 0)]
        begun = [entry.begun for entry in lost if entry.begun is not None]

        if lost:
            self.lost_since = min([mark for _, mark in lost]
                                  + [self.lost_since or lost[0][1]])
        if begun:
            self.lost_begun = max(begun + [self.lost_begun or begun[0]])

    def check(self, rows, limit, settle=True):
        """What is wrong with what was found, a list of Row, if all that has a
        mark of at most limit must be there.  If told to settle, it becomes
        what clients go on from."""

        wrong = list(self.wrong)
        found = {}
        self.lost_since = None
        self.lost_begun = None
        allowed, self.lost = self.lost, self.lost

        for row in rows:
            if row.key not in self.tasks:
                wrong.append("nobody asked for it: %s" % (row,))
            elif row.key in found:
                wrong.append("it is there twice: %s" % (row,))
            found[row.key] = row

        for key, task in list(self.tasks.items()):
            row = found.get(key)

            if row and task.id and row.id != task.id:
                wrong.append("another id, %s: %s" % (row.id, task.told()))

            if task.loose:
                good = self.match_loose(task, row, limit)
                state = State(phase=GONE) if row is None \
                    else State(row.version, row.phase, row.attempt,
                               row.result)
            else:
                state = self.match(task, row, limit)
                good = state is not None

            if not good:
                wrong.append("found %s%s, but up to %s: %s"
                             % (text_of(row), ", other bytes" if row and any(
                                 row.phase == state.phase
                                 for state, _ in task.states) else "",
                                limit, task.told()))
                continue

            if not settle:
                continue

            if not task.loose:
                self.note_lost(task, state)

            if state.phase == GONE:
                if task.required(limit) == -1:
                    del self.tasks[key]     # it never was
                else:
                    task.states = [Entry([state, 0])]
                    task.ends = [[state, 0]] * task.loose
                continue

            state = state._replace(version=row.version, skipped=False)
            task.id = row.id
            task.lease = state.lease
            task.states = [Entry([state, 0])]
            task.loaded = state
            task.ends = [[state, 0]] * (task.loose and row.phase in ENDED)

        if self.lost < 0:
            wrong.append("%d tasks were claimed without anybody asking"
                         % -self.lost)

        self.lost = 0 if settle else allowed

        return wrong
