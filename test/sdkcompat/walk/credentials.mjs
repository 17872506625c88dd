// The ways to pass a credential to the client.
import { deepEqual, equal, ok } from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { client as workspace, refusal, seam, setting } from './setting.mjs'

const { apiKey, consoleSessionToken, endpoint, personalAccessToken, publishableKey, workspaceId } = setting
const { Seam, SeamWithoutWorkspace, SeamMultiWorkspace } = seam
// The older generation has another name for the client of several workspaces.
const Roaming = SeamWithoutWorkspace ?? SeamMultiWorkspace

describe('credentials', () => {
  for (const [name, client] of Object.entries({
    'an API key': () => Seam.fromApiKey(apiKey, { endpoint }),
    'an API key, as an option': () => new Seam({ apiKey, endpoint }),
    'a personal access token': () => Seam.fromPersonalAccessToken(personalAccessToken, workspaceId, { endpoint }),
    'a console session': () => Seam.fromConsoleSessionToken(consoleSessionToken, workspaceId, { endpoint }),
    'an endpoint that ends in a slash': () => new Seam({ apiKey, endpoint: `${endpoint}/` }),
  })) {
    it(name, async () => {
      const workspace = await client().workspaces.get()
      equal(workspace.workspace_id, workspaceId)
    })
  }

  for (const [name, client] of Object.entries({
    'a personal access token, for all its workspaces': () => Roaming.fromPersonalAccessToken(personalAccessToken, { endpoint }),
    'a console session, for all its workspaces': () => Roaming.fromConsoleSessionToken(consoleSessionToken, { endpoint }),
  })) {
    it(name, async () => {
      const found = await client().workspaces.list()
      deepEqual(found.map((workspace) => workspace.workspace_id), [workspaceId])
    })
  }

  it('a publishable key, of a page whose user is given devices', async () => {
    const user_identifier_key = randomUUID()
    const page = await Seam.fromPublishableKey(publishableKey, user_identifier_key, { endpoint })
    deepEqual(await page.devices.list(), [])
    const { client_session_id } = await page.clientSessions.get()
    equal((await workspace.clientSessions.get({ user_identifier_key })).client_session_id, client_session_id)

    const { spare } = setting.accounts
    await workspace.clientSessions.grantAccess({ user_identifier_key, connected_account_ids: [spare.id] })
    const ids = (devices) => devices.map(({ device_id }) => device_id).sort()
    const own = ids(await page.devices.list())
    ok(own.length > 0 && own.every((id) => spare.devices.includes(id)))
    const again = await Seam.fromPublishableKey(publishableKey, user_identifier_key, { endpoint })
    equal((await again.clientSessions.get()).client_session_id, client_session_id)
    deepEqual(ids(await again.devices.list()), own)

    // Another user has another session, which a client may continue.
    const other = await Seam.fromPublishableKey(publishableKey, randomUUID(), { endpoint })
    deepEqual(await other.devices.list(), [])
    const { token } = await workspace.clientSessions.get({ user_identifier_key })
    await other.updateClientSessionToken(token)
    deepEqual(ids(await other.devices.list()), own)
    await workspace.clientSessions.revoke({ client_session_id })
    ok(seam.isSeamHttpUnauthorizedError(await refusal(page.devices.list())))
  })

  it('an unknown publishable key', async () => {
    const error = await refusal(Seam.fromPublishableKey('seam_pk1AAAAAAAA_aaaaaaaaaaaaaaaaaaaaaaaa', randomUUID(), { endpoint }))
    ok(seam.isSeamHttpUnauthorizedError(error), error.stack)
  })

  it('from the environment', async () => {
    Object.assign(process.env, { SEAM_API_KEY: apiKey, SEAM_ENDPOINT: endpoint })
    equal((await new Seam().workspaces.get()).workspace_id, workspaceId)
    delete process.env.SEAM_API_KEY
    Object.assign(process.env, { SEAM_PERSONAL_ACCESS_TOKEN: personalAccessToken, SEAM_WORKSPACE_ID: workspaceId })
    equal((await new Seam().workspaces.get()).workspace_id, workspaceId)
    for (const name of ['SEAM_ENDPOINT', 'SEAM_PERSONAL_ACCESS_TOKEN', 'SEAM_WORKSPACE_ID']) delete process.env[name]
  })
})
