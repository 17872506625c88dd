// What all parts of the walk share: the client's package, the server, and the test's resources.
import { ok } from 'node:assert/strict'

// seam is the package as its users import it.
export const seam = await import(process.env.SEAM_PACKAGE)

// setting is {endpoint, apiKey, personalAccessToken, consoleSessionToken, publishableKey, workspaceId, accessSystem, devices, accounts};
// devices by the profile of a simulated device, accounts by what they are for: {id, devices}.
export const setting = JSON.parse(process.env.SEAM_SETTING)

// client polls action attempts often, because the simulated locks are quick.
export const client = seam.Seam.fromApiKey(setting.apiKey, {
  endpoint: setting.endpoint,
  waitForActionAttempt: { timeout: 30_000, pollingInterval: 50 },
  isUndocumentedApiEnabled: true, // the older generation requires it to list all its methods
})

// contract is the server's OpenAPI description, read by the package's own function.
export const contract = await seam.getOpenapiSchema(setting.endpoint)

export const isRoute = (path) => contract.paths[path] !== undefined

// answerOf returns the schema of a route's response.
export function answerOf(path) {
  const named = (schema) => (schema.$ref ? contract.components.schemas[schema.$ref.split('/').at(-1)] : schema)
  return named(contract.paths[path].post.responses['200'].content['application/json'].schema)
}

// until waits until a condition is truthy, and returns its value.
export async function until(what, met, within = 30_000) {
  for (const end = Date.now() + within; ; ) {
    const found = await met()
    if (found) return found
    ok(Date.now() < end, `timeout waiting: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

let pins = 312_045

// pin returns an unused PIN. The initial ones on the locks, and those that the server generates, are shorter.
export const pin = () => String(++pins)

// codeOn creates a code and waits until it is on the device.
export async function codeOn(device_id, more = {}) {
  const made = await client.accessCodes.create({ device_id, code: pin(), ...more })
  return await until('a code is on its device', async () => {
    const now = await client.accessCodes.get({ access_code_id: made.access_code_id })
    return now.status === 'set' && now
  })
}

// foundOn adds an unmanaged code to a device.
export const foundOn = async (device_id, code = pin()) =>
  await client.accessCodes.simulate.createUnmanagedAccessCode({ device_id, name: 'Found', code })

// refusal returns the error of a request that fails.
export async function refusal(request) {
  try {
    await request
  } catch (error) {
    return error
  }
  throw new Error('the request was not rejected')
}

// isGone waits until get fails with 404.
export const isGone = async (what, get) =>
  await until(`${what} is gone`, async () => {
    try {
      await get()
    } catch (error) {
      if (error.statusCode === 404) return true
      throw error
    }
  })
