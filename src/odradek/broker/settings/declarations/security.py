"""Who may do what; TLS and SASL are not offered yet."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import BOOLEAN, LOW, STRING, read_only, theme
from odradek.common.config import one_of

AUTHORIZERS = (
    "",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)


@theme
class SecuritySettings:
    """The authorizer, and principals that it does not ask about."""

    authorizer_class_name: str = read_only(
        "authorizer.class.name",
        STRING,
        "",
        "Turns permissions on, by the name of Kafka's own authorizer; empty allows everything.",
        one_of(*AUTHORIZERS),
        importance=LOW,
    )
    super_users: str = read_only(
        "super.users", STRING, "", "Principals that may do everything, as User:name;User:name."
    )
    allow_everyone_if_no_acl_found: bool = read_only(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        "Whether a resource without any permission is open to all.",
    )
