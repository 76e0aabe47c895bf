"""What operators have in common whose calls take tensors by name."""
from functools import partial

from ._collectives import _count
from ._errors import InvalidArgumentError
from ._tensors import is_tensor, type_name
from ._transfers import _Transfer


class NamedOperands(_Transfer):
    """An operator whose calls take tensors by name, some of which may be None."""

    without_rows = "; where a rank has no rows, an empty tensor is accepted"

    def choice(self, word, value, accepted):
        if value not in accepted:
            raise InvalidArgumentError(f"{self.name}: {word}={value!r}; accepted are {', '.join(repr(each) for each in accepted)}")
        return accepted[value]

    def spread(self, given, call, needed=()):
        """call(device, tensors by name): of this process's rank, in world.run of this thread's, where the tensors are single ones, else of each
        local rank with its own of lists. Those that are `needed` may not be None. It checks what it is given and returns what is to be called then (at_each)."""
        def checked(device, given):
            for word in needed:
                if given[word] is None:
                    raise InvalidArgumentError(f"{self.name}: {word} of rank {device.rank} is missing{self.without_rows}")
            return call(device, given)
        if any(is_tensor(each) for each in given.values()):
            self.at_each([(self.world.rank, partial(checked, given=given))])
            return
        ranks = self.world.local_ranks
        lists = {word: [None] * len(ranks) if each is None else list(each) for word, each in given.items()}
        for word, each in lists.items():
            if len(each) != len(ranks):
                raise InvalidArgumentError(f"{self.name}: this process has {len(ranks)} ranks; {word} are {len(each)} tensors")
        self.at_each([(rank, partial(checked, given={word: each[place] for word, each in lists.items()})) for place, rank in enumerate(ranks)])

    def addresses(self, device, tensors, wanted):
        """Of tensors by name, of which wanted says (name, types, elements), in its order; 0 for None. elements: None for any number."""
        found = []
        for word, types, elements in wanted:
            tensor = tensors[word]
            if tensor is None:
                found.append(0)
                continue
            types = (types,) if isinstance(types, str) else types
            kind = type_name(tensor.dtype)
            if elements is not None and _count(tensor) < elements:
                raise InvalidArgumentError(f"{self.name}: {word} has {_count(tensor)} elements; {elements} and more are accepted")
            found.append(self.address(device, word, tensor, kind if kind in types else types[0]))
        return found


def rows_of(name, word, tensor, columns):
    """Rows of so many elements that a tensor has."""
    count = _count(tensor)
    if count % columns:
        raise InvalidArgumentError(f"{name}: {word} has {count} elements, no multiple of the {columns} of a row")
    return count // columns
