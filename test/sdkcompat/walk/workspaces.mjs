import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, codeOn, isGone, refusal, seam, setting } from './setting.mjs'

const hook = async () => await client.webhooks.create({ url: 'https://hooks.example/walk', event_types: ['device.connected'] })

export const workspaces = {
  '/workspaces/get': async (call) => {
    const workspace = await call({})
    equal(workspace.workspace_id, setting.workspaceId)
    equal(workspace.is_sandbox, true)
  },
  '/workspaces/list': async (call) => {
    deepEqual((await call({})).map((workspace) => workspace.workspace_id), [setting.workspaceId])
  },
  '/workspaces/create': async (call) => {
    const workspace = { name: 'Beach house', connect_partner_name: 'Acme', is_sandbox: false }
    // An API key belongs to one workspace permanently: this is for clients of several workspaces.
    equal((await refusal(call(workspace))).statusCode, 403)
    const Roaming = seam.SeamWithoutWorkspace ?? seam.SeamMultiWorkspace
    const { endpoint, personalAccessToken } = setting
    const made = await Roaming.fromPersonalAccessToken(personalAccessToken, { endpoint }).workspaces.create(workspace)
    equal(made.name, 'Beach house')
    const there = seam.Seam.fromPersonalAccessToken(personalAccessToken, made.workspace_id, { endpoint })
    equal((await there.workspaces.get()).workspace_id, made.workspace_id)
    deepEqual(await there.devices.list(), [])
  },
  '/workspaces/update': async (call) => {
    await call({ connect_partner_name: 'Acme' })
    equal((await client.workspaces.get()).connect_partner_name, 'Acme')
  },
  // This step runs after all steps that need the reset resources.
  '/workspaces/reset_sandbox': async (call) => {
    const { access_code_id } = await codeOn(setting.devices.august)
    const attempt = await call({})
    equal(attempt.action_type, 'RESET_SANDBOX_WORKSPACE')
    equal(attempt.status, 'success')
    await isGone('the code', () => client.accessCodes.get({ access_code_id }))
  },
  '/webhooks/create': async (call) => {
    const webhook = await call({ url: 'https://hooks.example/walk' })
    equal(webhook.url, 'https://hooks.example/walk')
    deepEqual(webhook.event_types, ['*'])
    ok(webhook.secret.startsWith('whsec_'))
  },
  '/webhooks/get': async (call) => {
    const made = await hook()
    const { events_waiting, ...webhook } = await call({ webhook_id: made.webhook_id })
    deepEqual(webhook, made)
    equal(typeof events_waiting, 'number') // an extension of this server
  },
  '/webhooks/list': async (call) => {
    const made = await hook()
    ok((await call({})).some((webhook) => webhook.webhook_id === made.webhook_id))
  },
  '/webhooks/update': async (call) => {
    const { webhook_id } = await hook()
    await call({ webhook_id, event_types: ['lock.locked', 'lock.unlocked'] })
    deepEqual((await client.webhooks.get({ webhook_id })).event_types, ['lock.locked', 'lock.unlocked'])
  },
  '/webhooks/delete': async (call) => {
    const { webhook_id } = await hook()
    await call({ webhook_id })
    await isGone('the webhook', () => client.webhooks.get({ webhook_id }))
  },
}
