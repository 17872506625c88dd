import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, refusal, seam, setting } from './setting.mjs'

const { endpoint } = setting
const connected_account_ids = [setting.accounts.spare.id]

let users = 0

const session = async (more = {}) => await client.clientSessions.create({ user_identifier_key: `user-${++users}`, ...more })

const by = (made) => seam.Seam.fromClientSessionToken(made.token, { endpoint })

export const clientSessions = {
  '/client_sessions/create': async (call) => {
    const made = await call({ user_identifier_key: `user-${++users}`, connected_account_ids })
    deepEqual(made.connected_account_ids, connected_account_ids)
    ok(seam.isClientSessionToken(made.token))
    // An end user sees only the devices of their own account.
    const own = await by(made).devices.list()
    ok(own.length > 0 && own.every((device) => device.connected_account_id === connected_account_ids[0]))
    equal((await refusal(by(made).devices.get({ device_id: setting.devices.august }))).code, 'device_not_found')
  },
  '/client_sessions/get': async (call) => {
    const made = await session()
    equal((await call({ client_session_id: made.client_session_id })).user_identifier_key, made.user_identifier_key)
  },
  '/client_sessions/get_or_create': async (call) => {
    const user_identifier_key = `user-${++users}`
    const made = await call({ user_identifier_key, connected_account_ids })
    equal((await call({ user_identifier_key })).client_session_id, made.client_session_id)
  },
  '/client_sessions/list': async (call) => {
    const made = await session()
    const [found] = await call({ user_identifier_key: made.user_identifier_key })
    equal(found.client_session_id, made.client_session_id)
  },
  '/client_sessions/grant_access': async (call) => {
    const { client_session_id } = await session()
    await call({ client_session_id, connected_account_ids })
    deepEqual((await client.clientSessions.get({ client_session_id })).connected_account_ids, connected_account_ids)
  },
  '/client_sessions/revoke': async (call) => {
    const made = await session()
    await call({ client_session_id: made.client_session_id })
    ok(seam.isSeamHttpUnauthorizedError(await refusal(by(made).devices.list())))
  },
  '/client_sessions/delete': async (call) => {
    const made = await session()
    const { client_session_id } = made
    await call({ client_session_id })
    ok(seam.isSeamHttpUnauthorizedError(await refusal(by(made).devices.list())))
    equal((await refusal(client.clientSessions.get({ client_session_id }))).statusCode, 404)
  },
}
