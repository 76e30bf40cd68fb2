# Copyright (c) 2026, the infrastructure.services contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The documentation of the options that every module shares, and of those that work on the ledger
alone.
"""


class ModuleDocFragment:
    """C(infrastructure.services.connection)."""

    DOCUMENTATION = r"""
options:
  base_url:
    description:
      - Base URL of the Infrastructure Service, V(http) or V(https), without user info, query or fragment.
      - A path prefix is kept, and a trailing slash is allowed. C(/api/v1) is not part of it.
      - If not given, E(INFRASTRUCTURE_SERVICES_BASE_URL) is used.
    type: str
    required: true
  access_token:
    description:
      - Bearer token, sent verbatim. It takes precedence over O(auth_url); one of the two is required.
      - If not given, E(INFRASTRUCTURE_SERVICES_ACCESS_TOKEN) is used.
    type: str
  auth_url:
    description:
      - OAuth 2.0 token endpoint. The task fetches a token with the client credentials grant (RFC 6749 section 4.4),
        which all workers of a run share until it expires. After a 401 the task replaces it once.
      - The values in its query are credentials by their name, as in O(auth_parameters).
      - If not given, E(INFRASTRUCTURE_SERVICES_AUTH_URL) is used.
    type: str
  client_id:
    description:
      - Client identifier for O(auth_url).
      - If not given, E(INFRASTRUCTURE_SERVICES_CLIENT_ID) is used.
    type: str
  client_secret:
    description:
      - Client secret for O(auth_url).
      - If not given, E(INFRASTRUCTURE_SERVICES_CLIENT_SECRET) is used.
    type: str
  client_authentication:
    description:
      - How the client authenticates at O(auth_url) (RFC 6749 section 2.3.1).
      - V(basic) is HTTP Basic authentication, V(post) the form fields C(client_id) and C(client_secret).
      - If not given, E(INFRASTRUCTURE_SERVICES_CLIENT_AUTHENTICATION) is used.
    type: str
    choices:
      - basic
      - post
    default: basic
  scopes:
    description:
      - Scopes to request from O(auth_url), joined by spaces. When fewer are granted, a warning names the missing ones.
      - If not given, E(INFRASTRUCTURE_SERVICES_SCOPES) is used.
    type: list
    elements: str
  auth_parameters:
    description:
      - Additional form fields for the token request, such as C(audience), or another C(grant_type) and its fields.
      - A value whose name marks it as a credential is treated as a secret, for example C(client_assertion), C(password)
        or C(refresh_token), but not C(audience), C(resource), C(scope) or a name that ends in C(_type).
    type: dict
  headers:
    description:
      - Additional headers for each request to the service, such as the key or tenant that a gateway requires.
        They are not sent to O(auth_url). A header whose value is null is omitted.
      - Headers that the collection sets itself are refused, for example C(Authorization) and C(Content-Type).
      - The value of a header whose name marks it as a credential is treated as a secret, for example C(X-Api-Key) or
        C(Cookie).
    type: dict
  allow_http:
    description:
      - Whether O(base_url) and O(auth_url) may be C(http://) for hosts other than loopback;
        token and data are then sent unencrypted.
      - If not given, E(INFRASTRUCTURE_SERVICES_ALLOW_HTTP) is used.
    type: bool
    default: false
  validate_certs:
    description:
      - Whether the certificate of the server must be valid. V(false) raises a warning.
      - If not given, E(INFRASTRUCTURE_SERVICES_VALIDATE_CERTS) is used.
    type: bool
    default: true
  ca_path:
    description:
      - PEM file, or directory prepared by C(openssl rehash), of the certificate authorities to trust
        instead of those of the system (E(SSL_CERT_FILE) and E(SSL_CERT_DIR) included), of requests, and of the
        directories where C(ansible.builtin.uri) looks, such as C(/etc/ansible).
      - If not given, the environment variables E(INFRASTRUCTURE_SERVICES_CA_PATH), E(REQUESTS_CA_BUNDLE)
        and E(CURL_CA_BUNDLE) are used, in this order.
      - A relative path, also of O(client_cert) and O(client_key), lies below the working directory. On another host it
        is a path of that host.
    type: path
  client_cert:
    description:
      - PEM file with the client certificate for mutual TLS; it may hold the key too.
      - If not given, E(INFRASTRUCTURE_SERVICES_CLIENT_CERT) is used.
    type: path
  client_key:
    description:
      - PEM file with the unencrypted key of O(client_cert).
      - If not given, E(INFRASTRUCTURE_SERVICES_CLIENT_KEY) is used.
    type: path
  use_proxy:
    description:
      - Whether to use the proxy that the environment names
        (E(HTTP_PROXY), E(HTTPS_PROXY), E(ALL_PROXY), E(NO_PROXY), also in lower case).
      - Never for a loopback host. The operating system is not asked.
    type: bool
    default: true
  timeout:
    description:
      - Seconds that one attempt may take as a whole, from connecting to the last byte of the answer; at most a day,
        with O(ledger) at most 15 minutes.
      - If not given, E(INFRASTRUCTURE_SERVICES_TIMEOUT) is used.
    type: float
    default: 120
  connect_timeout:
    description:
      - Seconds, within O(timeout), to connect; at most a day. The system limits the name look-up.
    type: float
    default: 10
  retries:
    description:
      - Further attempts after the first, made only where repeating the request is safe. A creation is repeated
        only if provably nothing of the request was sent, or the service answered 429.
      - At most 100. If not given, E(INFRASTRUCTURE_SERVICES_RETRIES) is used.
    type: int
    default: 3
  retry_max_delay:
    description:
      - Longest wait in seconds before a further attempt; V(0) means no waiting; at most a day.
      - A C(Retry-After) of the service is respected up to this value; a longer one ends the task.
    type: float
    default: 30
  ledger:
    description:
      - Where the controller records what was sent, so that an update that is up to date is not sent again. An absolute
        path (an SQLite file), or a C(postgresql://) URL that names host, database and C(schema). V(none) means none.
      - M(infrastructure.services.ledger_create) creates it, for one service. Another O(base_url) is refused.
      - While another task may have a request in flight for the asset, it waits.
      - It works in the Ansible worker alone, not on a target and not with C(async). PostgreSQL needs C(psycopg) there.
      - If not given, E(INFRASTRUCTURE_SERVICES_LEDGER) is used.
    type: str
requirements:
  - python >= 3.9 where the task runs
  - requests >= 2.31 where the task runs
attributes:
  action_group:
    description: Use C(group/infrastructure.services.all) in C(module_defaults) to set options for all modules.
    support: full
    membership:
      - infrastructure.services.all
  check_mode:
    description: Can run in C(check_mode) and return what would change, without a request of any kind.
    support: full
  diff_mode:
    description: Returns what changed, or would change, when in diff mode.
    support: full
notes:
  - An environment variable that is empty counts as unset.
  - Ansible's guidelines reserve C(ansible_facts) for modules whose name ends in C(_facts). The modules for assets
    return them as facts all the same, so that the next task needs no C(register).
"""

    CREATION = r"""
options:
  ledger:
    description:
      - Where the controller records what was created, so that running again creates nothing twice. An
        absolute path (an SQLite file), or a C(postgresql://) URL such as
        C(postgresql://ledger@db.example.com/ledger?schema=fleet).
      - The word V(none) says that there is no ledger, so that each run creates another machine.
      - M(infrastructure.services.ledger_create) creates it, once, for one service. Another O(base_url) is refused, and
        so is a ledger that does not exist.
      - While another task may have a request in flight for the asset, it waits.
      - If the asset is in doubt, the task fails and says what to do next.
      - It works in the Ansible worker alone, not on a target and not with C(async). PostgreSQL needs C(psycopg) there.
      - If not given, E(INFRASTRUCTURE_SERVICES_LEDGER) is used.
    type: str
    required: true
"""

    LEDGER = r"""
options:
  ledger:
    description:
      - Location of the ledger, an absolute path (an SQLite file) or a C(postgresql://) URL such as
        C(postgresql://ledger@db.example.com/ledger?schema=fleet). A relative path and C(~) are refused.
      - If not given, E(INFRASTRUCTURE_SERVICES_LEDGER) is used.
    type: str
    required: true
attributes:
  action_group:
    description: Use C(group/infrastructure.services.all) in C(module_defaults) to set options for all modules.
    support: full
    membership:
      - infrastructure.services.all
notes:
  - The task runs on the controller, whatever the connection of its host, and cannot be combined with C(async).
  - It accepts all options of the action group C(infrastructure.services.all), and does not use the others.
"""
