"""What the service has promised so far, and where it broke a promise."""

import threading


class Ledger:
    """Filled by clients and observers on any threads. `violations` has a sentence, with the id, for each broken promise."""

    def __init__(self):
        self.lock = threading.Lock()
        self.violations = []
        self.digests = {}  # of profiles that are there, by name
        self.deleted = set()
        self.requests = {}  # of started operations, by name
        self.ends = {}  # how each operation that is done ended
        self.answers = {}  # the first one to each request
        self.observations = 0

    def broken(self, what):
        with self.lock:
            self.violations.append(what)

    def stored(self, name, digest):
        with self.lock:
            self.digests[name] = digest

    def removed(self, name):
        with self.lock:
            del self.digests[name]
            self.deleted.add(name)

    def started(self, name, request):
        with self.lock:
            if name in self.requests:
                self.violations.append(f"{name} was started twice, by different requests")
            self.requests[name] = request

    def observed(self, name, operation, where):
        """What a replica says of an operation: once it is done it never changes, on no replica."""
        with self.lock:
            self.observations += 1
            end = self.ends.get(name)
            if operation.done and end is None:
                self.ends[name] = operation
            elif end is not None and operation.SerializeToString(deterministic=True) != end.SerializeToString(deterministic=True):
                self.violations.append(f"{name} had ended, and is another on {where}:\n{end}\n{operation}")

    def answered(self, request, reply):
        """An answer to a request, without what tells one computation of it from another: the same whenever and whoever is asked."""
        key = (type(request).__name__, request.SerializeToString(deterministic=True))
        with self.lock:
            first = self.answers.setdefault(key, reply)
            if first != reply:
                self.violations.append(f"another answer than the first to {request}:\n{first}\n{reply}")

    def open_operations(self):
        with self.lock:
            return [name for name in self.requests if name not in self.ends]

    def check_profiles(self, listed, where):
        """`listed`: the digest of every profile of a replica, by name."""
        with self.lock:
            for name, digest in self.digests.items():
                if name not in listed:
                    self.violations.append(f"{name} was acknowledged, and is lost on {where}")
                elif listed[name] != digest:
                    self.violations.append(f"{name} was acknowledged with digest {digest}, and has {listed[name]} on {where}")
            for name in sorted(listed.keys() - self.digests.keys()):
                what = "its deletion was acknowledged" if name in self.deleted else "nobody stored it"
                self.violations.append(f"{name} is there on {where}, but {what}")

    def check_operations(self, listed, where):
        """`listed`: every operation of a replica by name. All were started, once, and all are done."""
        with self.lock:
            for name in self.requests:
                if name not in listed:
                    self.violations.append(f"{name} was acknowledged, and is lost on {where}")
                elif not listed[name].done:
                    self.violations.append(f"{name} has no end on {where}")
            for name in sorted(listed.keys() - self.requests.keys()):
                self.violations.append(f"{name} is there on {where}, but no start of it was acknowledged")
        for name, operation in listed.items():
            self.observed(name, operation, where)
