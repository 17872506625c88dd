// One step for each route, by its path. It runs for each method of the client that requests this route: call is that
// method, and the step calls it with realistic parameters, and checks its result.
import { accessCodes } from './access_codes.mjs'
import { accessSystems } from './access_systems.mjs'
import { accounts } from './accounts.mjs'
import { devices } from './devices.mjs'
import { phones, userIdentities } from './people.mjs'
import { clientSessions } from './sessions.mjs'
import { attemptsAndEvents } from './attempts_events.mjs'
import { thermostats } from './thermostats.mjs'
import { connectWebviews } from './webviews.mjs'
import { workspaces } from './workspaces.mjs'

export const steps = {
  ...workspaces,
  ...clientSessions,
  ...connectWebviews,
  ...accounts,
  ...devices,
  ...thermostats,
  ...accessCodes,
  ...userIdentities,
  ...phones,
  ...accessSystems,
  ...attemptsAndEvents,
}
