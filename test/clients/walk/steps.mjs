// For each route a step, by its path. It is called for each method of the client that asks this route: call is that
// method, and the step calls it with what a user would give, and looks at what it returns.
import { accessCodes } from './access_codes.mjs'
import { accounts } from './accounts.mjs'
import { devices } from './devices.mjs'
import { userIdentities } from './people.mjs'
import { told } from './told.mjs'
import { workspaces } from './workspaces.mjs'

export const steps = { ...workspaces, ...accounts, ...devices, ...accessCodes, ...userIdentities, ...told }
