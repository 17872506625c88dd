import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone, setting } from './setting.mjs'

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
  '/webhooks/create': async (call) => {
    const webhook = await call({ url: 'https://hooks.example/walk' })
    equal(webhook.url, 'https://hooks.example/walk')
    deepEqual(webhook.event_types, ['*'])
    ok(webhook.secret.startsWith('whsec_'))
  },
  '/webhooks/get': async (call) => {
    const made = await hook()
    deepEqual(await call({ webhook_id: made.webhook_id }), made)
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
