"""The verbs of access: who is there, what they may do, and the record of it.

Every verb that changes something writes its audit event in the same transaction. None of them asks whether the actor
may do it: who receives a call from outside asks first, by `require`. What would leave nobody to administer access is a
Conflict (see administrators.py).
"""

from audit.record import Actor, Right, audit
from rbac.services.administrators import administrator, administrator_kept, is_administrator
from rbac.services.authorize import (
    allowed,
    allowed_any,
    decide,
    forget,
    policies_of,
    reading_of,
    require,
    require_any,
)
from rbac.services.groups import (
    group_add,
    group_create,
    group_delete,
    group_find,
    group_remove,
    groups_of,
    members_of,
)
from rbac.services.keys import (
    key_check,
    key_create,
    key_delete,
    key_disable,
    key_find,
    key_rotate,
    keys_of,
)
from rbac.services.policies import (
    policies_effective,
    policies_held,
    policy_attach,
    policy_create,
    policy_delete,
    policy_detach,
    policy_find,
    policy_put,
    policy_update,
)
from rbac.services.users import (
    user_create,
    user_delete,
    user_edit,
    user_find,
    user_set_active,
    user_set_password,
)
