// For each route a step, by its path. It is called for each method of the client that asks this route: call is that
// method, and the step calls it with what a user would give, and looks at what it returns.
import { accessCodes } from './access_codes.mjs'
import { accessSystems } from './access_systems.mjs'
import { accounts } from './accounts.mjs'
import { devices } from './devices.mjs'
import { userIdentities } from './people.mjs'
import { clientSessions } from './sessions.mjs'
import { told } from './told.mjs'
import { connectWebviews } from './webviews.mjs'
import { workspaces } from './workspaces.mjs'

export const steps = {
  ...workspaces,
  ...clientSessions,
  ...connectWebviews,
  ...accounts,
  ...devices,
  ...accessCodes,
  ...userIdentities,
  ...accessSystems,
  ...told,
}
