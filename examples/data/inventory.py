"""The stock of a small shop."""

from dataclasses import dataclass


@dataclass
class Item:
    """What there is of one thing."""

    name: str
    price: float
    count: int = 0


class Inventory:
    """Items by name."""

    def __init__(self):
        """Begin with nothing."""
        self.items = {}

    def add(self, name, price, count=1):
        """Put items into the stock."""
        item = self.items.setdefault(name, Item(name, price))
        item.count += count
        return item

    def remove(self, name, count=1):
        """Take items out of the stock."""
        item = self.items[name]
        item.count -= count
        return item

    def total(self):
        """Return what the whole stock is worth."""
        result = 0
        for item in self.items.values():
            result += item.price * item.count
        return result

    def report(self):
        """Return one line for each item."""
        lines = []
        for item in self.items.values():
            lines.append(f"{item.name}: {item.count} at {item.price:.2f}")
        return "\n".join(lines)
