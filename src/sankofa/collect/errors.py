"""What can go wrong with fetching.

OperatorError
└─ CollectFailed      a source could not be fetched; what was there stays
   ├─ ReplyRefused         a reply is not what it claims to be
   ├─ DeadlinePassed       a document took too long
   └─ Stopped              the operator ended the run
"""

from sankofa.model.errors import OperatorError


class CollectFailed(OperatorError):
    """A source could not be fetched; what was there stays."""


class ReplyRefused(CollectFailed):
    """A reply is not what it claims to be."""


class DeadlinePassed(CollectFailed):
    """A document took longer than its source allows; what came of it stays, to go on with."""


class Stopped(CollectFailed):
    """The operator ended the run."""
