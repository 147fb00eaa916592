"""TLS, SASL, and who may do what; `listener.name.NAME.` in front sets one listener."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    PASSWORD,
    STRING,
    per_broker,
    read_only,
    theme,
)
from odradek.common.config import one_of

AUTHORIZERS = (
    "",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)


@theme
class SecuritySettings:
    """Certificates, mechanisms, principals."""

    authorizer_class_name: str = read_only(
        "authorizer.class.name",
        STRING,
        "",
        "Turns permissions on, by the name of Kafka's own authorizer; empty lets everyone do everything.",
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
    connections_max_reauth_ms: int = read_only(
        "connections.max.reauth.ms",
        LONG,
        0,
        "How long a SASL session lasts before the client must authenticate again; 0 for ever.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = per_broker(
        "sasl.enabled.mechanisms", LIST, ("GSSAPI",), "The SASL mechanisms that clients may use."
    )
    sasl_mechanism_inter_broker_protocol: str = per_broker(
        "sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", "The SASL mechanism between brokers."
    )
    sasl_jaas_config: str | None = per_broker(
        "sasl.jaas.config", PASSWORD, None, "Credentials of a SASL mechanism in the format of a JAAS file."
    )
    sasl_server_max_receive_size: int = read_only(
        "sasl.server.max.receive.size", INT, 524_288, "The largest SASL message that is accepted."
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = read_only(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        "Where the keys that sign tokens are published: a file: or https: URL.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = read_only(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        3_600_000,
        "How often these keys are fetched anew.",
        importance=LOW,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = read_only(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        "First pause after fetching the keys has failed.",
        importance=LOW,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = read_only(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        "Longest pause after fetching the keys has failed.",
        importance=LOW,
    )
    sasl_oauthbearer_clock_skew_seconds: int = read_only(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        "How far the clock of whoever issues tokens may be off.",
        importance=LOW,
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = read_only(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        "Audiences of which a token must name one.",
        importance=HIGH,
    )
    sasl_oauthbearer_expected_issuer: str | None = read_only(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        "The issuer that a token must name.",
        importance=HIGH,
    )
    sasl_oauthbearer_scope_claim_name: str = read_only(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        "The claim of a token that holds its scopes.",
        importance=LOW,
    )
    sasl_oauthbearer_sub_claim_name: str = read_only(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        "The claim of a token that holds the user.",
        importance=LOW,
    )
    ssl_client_auth: str = per_broker(
        "ssl.client.auth",
        STRING,
        "none",
        "Whether clients must show a certificate: required, requested or none.",
        one_of("required", "requested", "none"),
    )
    ssl_protocol: str = per_broker(
        "ssl.protocol", STRING, "TLSv1.3", "The newest TLS version that is spoken."
    )
    ssl_enabled_protocols: tuple[str, ...] = per_broker(
        "ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The TLS versions that are spoken."
    )
    ssl_cipher_suites: tuple[str, ...] = per_broker(
        "ssl.cipher.suites", LIST, (), "The cipher suites that are allowed; empty leaves the library's."
    )
    ssl_endpoint_identification_algorithm: str = per_broker(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        "https checks host names in certificates of other brokers, empty does not.",
        importance=LOW,
    )
    ssl_principal_mapping_rules: str = read_only(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        "How the distinguished name of a certificate becomes a user.",
        importance=LOW,
    )
    ssl_keystore_type: str = per_broker(
        "ssl.keystore.type", STRING, "JKS", "The format of the key store; PEM is the one that needs no Java."
    )
    ssl_keystore_location: str | None = per_broker(
        "ssl.keystore.location", STRING, None, "The file with this broker's key and certificates."
    )
    ssl_keystore_password: str | None = per_broker(
        "ssl.keystore.password", PASSWORD, None, "The password of the key store."
    )
    ssl_key_password: str | None = per_broker(
        "ssl.key.password", PASSWORD, None, "The password of the private key."
    )
    ssl_keystore_key: str | None = per_broker(
        "ssl.keystore.key", PASSWORD, None, "This broker's private key itself, in PEM."
    )
    ssl_keystore_certificate_chain: str | None = per_broker(
        "ssl.keystore.certificate.chain", PASSWORD, None, "This broker's certificates themselves, in PEM."
    )
    ssl_truststore_type: str = per_broker(
        "ssl.truststore.type",
        STRING,
        "JKS",
        "The format of the trust store; PEM is the one that needs no Java.",
    )
    ssl_truststore_location: str | None = per_broker(
        "ssl.truststore.location", STRING, None, "The file with the certificates that are trusted."
    )
    ssl_truststore_password: str | None = per_broker(
        "ssl.truststore.password", PASSWORD, None, "The password of the trust store."
    )
    ssl_truststore_certificates: str | None = per_broker(
        "ssl.truststore.certificates", PASSWORD, None, "The trusted certificates themselves, in PEM."
    )
