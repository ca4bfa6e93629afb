"""Every reason that a condition or an event of ours can give: a word, and what it means.

A reason is a string wherever one is expected; its sentence goes into `docs/reference/reasons.md`.
"""

from typing import Final, Self

REASONS: Final[dict[str, "Reason"]] = {}


class Reason(str):
    """One word for programs, explained for people."""

    __slots__ = ("sentence",)
    sentence: str

    def __new__(cls, word: str, sentence: str) -> Self:
        """Make a reason and remember it for the reference."""
        made = super().__new__(cls, word)
        made.sentence = sentence
        REASONS[word] = made
        return made


SUCCEEDED = Reason("Succeeded", "The step is done for this generation of the spec.")
PROGRESSING = Reason("Progressing", "This generation of the spec has not come to that step yet.")
SUSPENDED = Reason("Suspended", "The object asks to be left alone, and always has.")
INTERNAL_ERROR = Reason(
    "InternalError", "The controller failed on this object in a way that it should not; it retries."
)
PASS_TIMED_OUT = Reason("PassTimedOut", "Looking at the object took longer than it may; retried.")
UNREADABLE = Reason("Unreadable", "The stored object does not fit its schema; edit it to go on.")

API_ERROR = Reason("ApiError", "The API server refused a request in an unusual way.")
BAD_CREDENTIALS = Reason("BadCredentials", "Credentials for an API server cannot be used.")
NOT_LEADING = Reason("NotLeading", "Another replica may be leading; nothing is written here.")
UNKNOWN_KIND = Reason("UnknownKind", "The API server does not serve a kind that is needed.")
UNREACHABLE = Reason("Unreachable", "No connection to the API server could be made.")
UNTRUSTED_SERVER = Reason("UntrustedServer", "The server's certificate does not prove who it is.")
TIMED_OUT = Reason("TimedOut", "The API server did not answer in time.")
BROKEN_ANSWER = Reason("BrokenAnswer", "The API server's answer ended early or made no sense.")
BAD_REQUEST = Reason("BadRequest", "The API server did not understand a request.")
UNAUTHORIZED = Reason("Unauthorized", "The API server does not accept the credentials.")
FORBIDDEN = Reason("Forbidden", "The account may not do what is needed.")
NOT_FOUND = Reason("NotFound", "An object that is needed is not there.")
CONFLICT = Reason("Conflict", "An object was changed by somebody else at the same time.")
ALREADY_EXISTS = Reason("AlreadyExists", "An object that was to be created is there already.")
FIELD_CONFLICT = Reason("FieldConflict", "Somebody else manages fields that were to be applied.")
EXPIRED = Reason("Expired", "The API server no longer knows that version of the past.")
TOO_LARGE = Reason("TooLarge", "A request is larger than the API server takes.")
INVALID = Reason("Invalid", "An object breaks rules of its kind.")
OVERLOADED = Reason("Overloaded", "The API server asks for fewer requests.")
SERVER_ERROR = Reason("ServerError", "The API server has a problem of its own.")

EVALUATION_FAILED = Reason(
    "EvaluationFailed", "A module, chart, policy or expression could not be evaluated."
)
INVALID_MODULE = Reason("InvalidModule", "A module, chart or policy is wrong; its author must act.")
EVALUATION_LIMIT = Reason(
    "EvaluationLimit", "Evaluating took more time, memory or output than it may."
)
FETCH_FAILED = Reason("FetchFailed", "The source could not be fetched.")
BAD_REFERENCE = Reason("BadReference", "The reference to a source cannot be understood.")
SOURCE_MISSING = Reason(
    "SourceMissing", "The source has no such repository, revision, tag, path or key."
)
SOURCE_DENIED = Reason(
    "SourceDenied", "The credentials for the source are missing or not accepted."
)
SOURCE_REFUSED = Reason("SourceRefused", "The source's content breaks a rule and is not used.")
SOURCE_TOO_LARGE = Reason("SourceTooLarge", "The source's content is more than its limit.")
SOURCE_UNAVAILABLE = Reason(
    "SourceUnavailable", "The source did not answer; the last good content stays in use."
)

SLOW = Reason("Slow", "The cluster answers, but takes its time.")
SECRET_NOT_FOUND = Reason("SecretNotFound", "The Secret that is referred to is not there.")
KEY_NOT_FOUND = Reason("KeyNotFound", "The Secret does not have the key that is referred to.")
INVALID_KUBECONFIG = Reason(
    "InvalidKubeconfig", "The kubeconfig holds something that is not allowed, or lacks something."
)
ADDRESS_REFUSED = Reason(
    "AddressRefused", "The kubeconfig points to an address that tenants may not reach."
)
OWN_CLUSTER = Reason(
    "OwnCluster", "A kubeconfig leads to the operator's own cluster, which needs none."
)
IDENTITY_CHANGED = Reason(
    "IdentityChanged", "Another cluster answers at this address than the one that was registered."
)

INVALID_GRAPH = Reason("InvalidGraph", "The graph cannot be executed as it is; change it.")
OUT_OF_REACH = Reason(
    "OutOfReach", "The graph asks for objects that its identity may not make; see `--identity`."
)
NO_IDENTITY = Reason("NoIdentity", "A graph without a live source must name a serviceAccountName.")
ACCOUNT_NOT_FOUND = Reason("AccountNotFound", "The ServiceAccount to act for does not exist.")
LIMIT_EXCEEDED = Reason("LimitExceeded", "The namespace has more graphs or objects than it may.")
NOT_HEALTHY = Reason("NotHealthy", "An object is applied and will not become ready by itself.")
NODES_FAILED = Reason("NodesFailed", "Objects could not be applied; the message says which.")
WAITING_FOR_NODES = Reason("WaitingForNodes", "Objects wait for others, or to become ready.")
INVALID_EXPRESSION = Reason(
    "InvalidExpression",
    "A value of another node cannot be filled in: its expression is wrong, or what it yields.",
)
OWNERSHIP_CONFLICT = Reason(
    "OwnershipConflict", "Somebody keeps changing fields that are ours; the fight was given up."
)
IMMUTABLE = Reason("Immutable", "A field that cannot change would have to; see `recreate`.")
PRUNE_BLOCKED = Reason(
    "PruneBlocked", "A change would delete much, or something precious; acknowledge it to go on."
)
PRUNE_AGREED = Reason(
    "PruneAgreed", "What a change deletes was acknowledged; it goes when everything is applied."
)
PRUNING = Reason("Pruning", "Objects that nobody asks for any more are being deleted.")
PRUNED = Reason("Pruned", "Objects that nobody asked for any more were deleted.")
READY = Reason("Ready", "Everything is applied and ready.")
APPLIED = Reason("Applied", "Objects were applied.")
ORPHANED = Reason("Orphaned", "Objects were left behind; from now on they are on their own.")
HANDED_OVER = Reason("HandedOver", "Objects belong to another graph from now on.")
FINALIZING = Reason("Finalizing", "The objects of a graph that is gone are being deleted.")
ABANDONED = Reason(
    "Abandoned", "Objects of a deleted graph could not be deleted for long, and were left behind."
)
NAMESPACE_TERMINATING = Reason("NamespaceTerminating", "The namespace is being deleted.")
CLUSTER_NOT_READY = Reason("ClusterNotReady", "The Cluster that is referred to cannot be used yet.")
NEAR_LIMIT = Reason("NearLimit", "The graph is close to a limit; split it in time.")
ADOPTED = Reason("Adopted", "Objects that existed before belong to the graph from now on.")
MIRRORED = Reason("Mirrored", "Objects of others are looked at; how they differ is reported.")

FETCHING = Reason("Fetching", "The source is being fetched.")
OVERRIDE_REFUSED = Reason(
    "OverrideRefused", "An override of a policy is not one that the platform allows."
)
UNKNOWN_POLICIES = Reason(
    "UnknownPolicies", "The namespace asks for policies that the operator does not have."
)
VIOLATED = Reason("Violated", "The input or what it renders to breaks rules; see the violations.")
RENDERED = Reason("Rendered", "A new revision was rendered and stored.")
EXECUTING = Reason("Executing", "The graph is being executed.")
DRY_RUN = Reason("DryRun", "Only a plan was made; nothing is applied.")
REVISION_NOT_FOUND = Reason("RevisionNotFound", "There is no such revision to return to.")
ROLLED_BACK = Reason("RolledBack", "An earlier revision is in use.")
ROLLBACK_FAILED = Reason("RollbackFailed", "The revision that was returned to is not Ready either.")
UNSUPPORTED = Reason("Unsupported", "A field asks for something that is not there yet.")

INVALID_CONFIGURATION = Reason(
    "InvalidConfiguration", "The configuration of the chain is wrong; the message names each place."
)
CHECKING_L1 = Reason("CheckingL1", "L1 is being asked which chain it is.")
WRONG_L1 = Reason("WrongL1", "The server of L1 is of another chain than the configuration.")
ORIGIN_CHANGED = Reason(
    "OriginChanged", "The configuration is of another chain than the data that is there."
)
WRONG_GENESIS = Reason(
    "WrongGenesis", "The first block of op-geth is not the one of the rollup configuration."
)
JWT_MISMATCH = Reason("JwtMismatch", "op-geth does not accept the token of the engine API.")
NOT_ANSWERING = Reason("NotAnswering", "A program runs and does not answer.")
STARTING = Reason("Starting", "A program runs and has not made progress yet.")
UNSAFE_HEAD_STALLED = Reason("UnsafeHeadStalled", "The chain makes no new blocks.")
SAFE_HEAD_STALLED = Reason(
    "SafeHeadStalled", "The chain makes blocks whose data does not get to L1."
)
SIGNER_FUNDS_LOW = Reason("SignerFundsLow", "An account cannot pay for much longer.")
UPGRADING = Reason("Upgrading", "The programs are changed one after the other.")
DISABLED = Reason("Disabled", "The component is not asked for.")
RUNNING = Reason("Running", "The chain makes blocks.")

ON_THE_WAY = frozenset(
    {
        PROGRESSING,
        WAITING_FOR_NODES,
        PRUNING,
        FINALIZING,
        FETCHING,
        EXECUTING,
        CHECKING_L1,
        STARTING,
        UPGRADING,
    }
)
"""Reasons that only say that something is still going on: nothing to warn of."""
