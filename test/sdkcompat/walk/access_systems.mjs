import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone, setting } from './setting.mjs'
import { newIdentity } from './people.mjs'

const acs_system_id = setting.accessSystem
const get = (user) => client.acs.users.get({ acs_user_id: user.acs_user_id })
const aGroup = async () => (await client.acs.accessGroups.list({ acs_system_id }))[0]
const anEntrance = async () => (await client.acs.entrances.list({ acs_system_id }))[0]
const entrancesOf = async (acs_user_id) => await client.acs.users.listAccessibleEntrances({ acs_user_id })

// guest creates a user of the access system.
export const guest = async (more = {}) => await client.acs.users.create({ acs_system_id, full_name: 'Jane Doe', ...more })

// member creates a user in an access group, who may use its entrances.
const member = async () => {
  const { acs_access_group_id } = await aGroup()
  const made = await guest({ acs_access_group_ids: [acs_access_group_id] })
  ok((await entrancesOf(made.acs_user_id)).length > 0)
  return { acs_user_id: made.acs_user_id, acs_access_group_id }
}

// belonging creates a user of a user identity.
const belonging = async () => {
  const { user_identity_id } = await newIdentity()
  const { acs_user_id } = await guest()
  await client.userIdentities.addAcsUser({ user_identity_id, acs_user_id })
  return { user_identity_id, acs_user_id }
}

export const accessSystems = {
  '/acs/systems/get': async (call) => {
    equal((await call({ acs_system_id })).acs_system_id, acs_system_id)
  },
  '/acs/systems/list': async (call) => {
    deepEqual((await call({})).map((system) => system.acs_system_id), [acs_system_id])
  },
  '/acs/access_groups/get': async (call) => {
    const group = await aGroup()
    deepEqual(await call({ acs_access_group_id: group.acs_access_group_id }), group)
  },
  '/acs/access_groups/list': async (call) => {
    ok((await call({ acs_system_id })).every((group) => group.acs_system_id === acs_system_id))
  },
  '/acs/access_groups/add_user': async (call) => {
    const { acs_access_group_id } = await aGroup()
    const { acs_user_id } = await guest()
    await call({ acs_access_group_id, acs_user_id })
    ok((await entrancesOf(acs_user_id)).length > 0)
  },
  '/acs/access_groups/remove_user': async (call) => {
    const { acs_user_id, acs_access_group_id } = await member()
    await call({ acs_access_group_id, acs_user_id })
    deepEqual(await entrancesOf(acs_user_id), [])
  },
  '/acs/access_groups/list_users': async (call) => {
    const { acs_user_id, acs_access_group_id } = await member()
    ok((await call({ acs_access_group_id })).some((user) => user.acs_user_id === acs_user_id))
  },
  '/acs/access_groups/list_accessible_entrances': async (call) => {
    const { acs_access_group_id } = await aGroup()
    ok((await call({ acs_access_group_id })).every((entrance) => entrance.acs_system_id === acs_system_id))
  },
  '/acs/access_groups/delete': async (call) => {
    const { acs_access_group_id } = (await client.acs.accessGroups.list({ acs_system_id })).at(-1)
    await call({ acs_access_group_id })
    await isGone('the access group', () => client.acs.accessGroups.get({ acs_access_group_id }))
  },
  '/acs/entrances/unlock': async (call) => {
    const { acs_entrance_id } = await anEntrance()
    const attempt = await call({ acs_entrance_id, acs_credential_id: '00000000-0000-0000-0000-000000000000' })
    deepEqual([attempt.action_type, attempt.status], ['UNLOCK_DOOR', 'success'])
  },
  '/acs/entrances/get': async (call) => {
    const entrance = await anEntrance()
    deepEqual(await call({ acs_entrance_id: entrance.acs_entrance_id }), entrance)
  },
  '/acs/entrances/list': async (call) => {
    ok((await call({ acs_system_id })).length > 0)
  },
  '/acs/entrances/grant_access': async (call) => {
    const { acs_entrance_id } = await anEntrance()
    const { acs_user_id } = await guest()
    await call({ acs_user_id, acs_entrance_id })
    deepEqual((await entrancesOf(acs_user_id)).map((entrance) => entrance.acs_entrance_id), [acs_entrance_id])
  },
  '/acs/users/create': async (call) => {
    const { acs_access_group_id } = await aGroup()
    const made = await call({ acs_system_id, full_name: 'Jane Doe', email_address: 'jane@example.com', acs_access_group_ids: [acs_access_group_id] })
    equal(made.full_name, 'Jane Doe')
    equal(made.acs_system_id, acs_system_id)
  },
  '/acs/users/get': async (call) => {
    const { acs_user_id } = await guest()
    equal((await call({ acs_user_id })).acs_user_id, acs_user_id)
  },
  '/acs/users/list': async (call) => {
    const { acs_user_id } = await guest()
    ok((await call({ acs_system_id })).some((user) => user.acs_user_id === acs_user_id))
  },
  '/acs/users/update': async (call) => {
    const { acs_user_id } = await guest()
    await call({ acs_user_id, full_name: 'Jane Roe' })
    equal((await get({ acs_user_id })).full_name, 'Jane Roe')
  },
  '/acs/users/delete': async (call) => {
    const { acs_user_id } = await guest()
    await call({ acs_user_id })
    await isGone('the user', () => get({ acs_user_id }))
  },
  '/acs/users/suspend': async (call) => {
    const { acs_user_id } = await guest()
    await call({ acs_user_id })
    equal((await get({ acs_user_id })).is_suspended, true)
  },
  '/acs/users/unsuspend': async (call) => {
    const { acs_user_id } = await guest()
    await client.acs.users.suspend({ acs_user_id })
    await call({ acs_user_id })
    equal((await get({ acs_user_id })).is_suspended, false)
  },
  '/acs/users/add_to_access_group': async (call) => {
    const { acs_access_group_id } = await aGroup()
    const { acs_user_id } = await guest()
    await call({ acs_user_id, acs_access_group_id })
    ok((await entrancesOf(acs_user_id)).length > 0)
  },
  '/acs/users/remove_from_access_group': async (call) => {
    const { acs_user_id, acs_access_group_id } = await member()
    await call({ acs_user_id, acs_access_group_id })
    deepEqual(await entrancesOf(acs_user_id), [])
  },
  '/acs/users/list_accessible_entrances': async (call) => {
    const { acs_user_id } = await member()
    ok((await call({ acs_user_id })).length > 0)
  },
  '/acs/users/revoke_access_to_all_entrances': async (call) => {
    const { acs_user_id } = await member()
    await call({ acs_user_id })
    deepEqual(await entrancesOf(acs_user_id), [])
  },
  '/acs/users/unmanaged/list': async (call) => {
    ok((await call({})).every((user) => user.is_managed === false))
  },
  '/acs/users/unmanaged/get': async (call) => {
    const [user] = await client.acs.users.unmanaged.list({})
    equal((await call({ acs_user_id: user.acs_user_id })).acs_user_id, user.acs_user_id)
  },
  '/user_identities/add_acs_user': async (call) => {
    const { user_identity_id } = await newIdentity()
    const { acs_user_id } = await guest()
    await call({ user_identity_id, acs_user_id })
    equal((await get({ acs_user_id })).user_identity_id, user_identity_id)
  },
  '/user_identities/remove_acs_user': async (call) => {
    const { user_identity_id, acs_user_id } = await belonging()
    await call({ user_identity_id, acs_user_id })
    deepEqual(await client.userIdentities.listAcsUsers({ user_identity_id }), [])
  },
  '/user_identities/list_acs_users': async (call) => {
    const { user_identity_id, acs_user_id } = await belonging()
    deepEqual((await call({ user_identity_id })).map((user) => user.acs_user_id), [acs_user_id])
  },
  '/user_identities/list_accessible_entrances': async (call) => {
    const { user_identity_id, acs_user_id } = await belonging()
    const { acs_entrance_id } = await anEntrance()
    await client.acs.entrances.grantAccess({ acs_user_id, acs_entrance_id })
    deepEqual((await call({ user_identity_id })).map((entrance) => entrance.acs_entrance_id), [acs_entrance_id])
  },
  '/user_identities/list_acs_systems': async (call) => {
    const { user_identity_id } = await belonging()
    deepEqual((await call({ user_identity_id })).map((system) => system.acs_system_id), [acs_system_id])
  },
}
