// The ways in which the client takes a credential.
import { deepEqual, equal } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { seam, setting } from './setting.mjs'

const { apiKey, consoleSessionToken, endpoint, personalAccessToken, workspaceId } = setting
const { Seam, SeamWithoutWorkspace, SeamMultiWorkspace } = seam
// The older generation calls the client of several workspaces differently.
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

  it('from the environment', async () => {
    Object.assign(process.env, { SEAM_API_KEY: apiKey, SEAM_ENDPOINT: endpoint })
    equal((await new Seam().workspaces.get()).workspace_id, workspaceId)
    delete process.env.SEAM_API_KEY
    Object.assign(process.env, { SEAM_PERSONAL_ACCESS_TOKEN: personalAccessToken, SEAM_WORKSPACE_ID: workspaceId })
    equal((await new Seam().workspaces.get()).workspace_id, workspaceId)
    for (const name of ['SEAM_ENDPOINT', 'SEAM_PERSONAL_ACCESS_TOKEN', 'SEAM_WORKSPACE_ID']) delete process.env[name]
  })
})
