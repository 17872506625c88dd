import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone, setting, until } from './setting.mjs'

const connected_account_id = setting.accounts.spare.id

export const accounts = {
  '/connected_accounts/get': async (call) => {
    const account = await call({ connected_account_id })
    equal(account.connected_account_id, connected_account_id)
    deepEqual(account.errors, [])
  },
  '/connected_accounts/list': async (call) => {
    ok((await call({})).some((account) => account.connected_account_id === connected_account_id))
    deepEqual(await call({ custom_metadata_has: { no: 'such' } }), [])
  },
  '/connected_accounts/update': async (call) => {
    await call({ connected_account_id, custom_metadata: { walked: true }, automatically_manage_new_devices: true })
    const account = await client.connectedAccounts.get({ connected_account_id })
    deepEqual(account.custom_metadata, { walked: true })
  },
  '/connected_accounts/sync': async (call) => {
    await call({ connected_account_id })
  },
  '/connected_accounts/simulate/disconnect': async (call) => {
    const { id } = setting.accounts.lost
    await call({ connected_account_id: id })
    await until('the account says what it lacks', async () => {
      const { errors } = await client.connectedAccounts.get({ connected_account_id: id })
      return errors.some((error) => error.error_code === 'account_disconnected')
    })
  },
  '/connected_accounts/delete': async (call) => {
    const { id } = setting.accounts.doomed
    await call({ connected_account_id: id })
    await isGone('the account', () => client.connectedAccounts.get({ connected_account_id: id }))
  },
}
