import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone, refusal, setting } from './setting.mjs'

let people = 0
const device_id = setting.devices.august

// newIdentity creates a user identity.
export const newIdentity = async () => await client.userIdentities.create({ user_identity_key: `walk-${++people}`, full_name: `Guest ${people}` })

const devicesOf = async (user_identity_id) =>
  (await client.userIdentities.listAccessibleDevices({ user_identity_id })).map((device) => device.device_id)

export const userIdentities = {
  '/user_identities/create': async (call) => {
    const user_identity_key = `walk-${++people}`
    const made = await call({ user_identity_key, full_name: 'Jane Doe', email_address: `jane-${people}@example.com` })
    equal(made.user_identity_key, user_identity_key)
    equal(made.full_name, 'Jane Doe')
  },
  '/user_identities/get': async (call) => {
    const made = await newIdentity()
    deepEqual(await call({ user_identity_id: made.user_identity_id }), made)
    deepEqual(await call({ user_identity_key: made.user_identity_key }), made)
  },
  '/user_identities/list': async (call) => {
    const made = await newIdentity()
    ok((await call({})).some((found) => found.user_identity_id === made.user_identity_id))
    deepEqual((await call({ user_identity_ids: [made.user_identity_id] })), [made])
  },
  '/user_identities/update': async (call) => {
    const { user_identity_id } = await newIdentity()
    await call({ user_identity_id, full_name: 'John Doe' })
    equal((await client.userIdentities.get({ user_identity_id })).full_name, 'John Doe')
  },
  '/user_identities/grant_access_to_device': async (call) => {
    const { user_identity_id } = await newIdentity()
    await call({ user_identity_id, device_id })
    deepEqual(await devicesOf(user_identity_id), [device_id])
  },
  '/user_identities/revoke_access_to_device': async (call) => {
    const { user_identity_id } = await newIdentity()
    await client.userIdentities.grantAccessToDevice({ user_identity_id, device_id })
    await call({ user_identity_id, device_id })
    deepEqual(await devicesOf(user_identity_id), [])
  },
  '/user_identities/list_accessible_devices': async (call) => {
    const { user_identity_id } = await newIdentity()
    await client.userIdentities.grantAccessToDevice({ user_identity_id, device_id })
    deepEqual((await call({ user_identity_id })).map((device) => device.device_id), [device_id])
  },
  '/user_identities/merge': async (call) => {
    const [primary, other] = [await newIdentity(), await newIdentity()]
    await call({ user_identity_key: primary.user_identity_key, merged_user_identity_keys: [other.user_identity_key] })
    const { user_identity_id } = other
    equal((await client.userIdentities.get({ user_identity_id })).user_identity_id, primary.user_identity_id)
  },
  '/user_identities/unmanaged/list': async (call) => {
    deepEqual(await call({}), [])
  },
  '/user_identities/unmanaged/get': async (call) => {
    const { user_identity_id } = await newIdentity()
    equal((await refusal(call({ user_identity_id }))).code, 'user_identity_not_found')
  },
  '/user_identities/unmanaged/update': async (call) => {
    const { user_identity_id } = await newIdentity()
    equal((await refusal(call({ user_identity_id, is_managed: true }))).code, 'user_identity_not_found')
  },
  '/user_identities/delete': async (call) => {
    const { user_identity_id } = await newIdentity()
    await call({ user_identity_id })
    await isGone('the user identity', () => client.userIdentities.get({ user_identity_id }))
  },
}

// newPhone creates a simulated phone of a new user identity.
const newPhone = async (call = (input) => client.phones.simulate.createSandboxPhone(input)) => {
  const { user_identity_id } = await newIdentity()
  return { user_identity_id, phone: await call({ user_identity_id, phone_metadata: { operating_system: 'ios', device_model: 'iPhone' } }) }
}

export const phones = {
  '/phones/simulate/create_sandbox_phone': async (call) => {
    const { phone } = await newPhone(call)
    equal(phone.device_type, 'ios_phone')
    equal(phone.display_name, 'iPhone')
  },
  '/phones/get': async (call) => {
    const { phone } = await newPhone()
    deepEqual(await call({ device_id: phone.device_id }), phone)
  },
  '/phones/list': async (call) => {
    const { user_identity_id, phone } = await newPhone()
    deepEqual(await call({ owner_user_identity_id: user_identity_id }), [phone])
  },
  '/phones/deactivate': async (call) => {
    const { phone } = await newPhone()
    await call({ device_id: phone.device_id })
    await isGone('the phone', () => client.phones.get({ device_id: phone.device_id }))
  },
}
