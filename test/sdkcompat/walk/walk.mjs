// Calls every method of a client against a running server. It fails if the client has a method for a route that no step
// calls, and if a step is unused.
import { deepEqual, equal, notEqual, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { methodsOf } from './methods.mjs'
import { client, contract, isRoute, seam, setting } from './setting.mjs'
import { steps } from './steps.mjs'
import './attempts.mjs'
import './credentials.mjs'
import './deliveries.mjs'
import './pages.mjs'
import './refusals.mjs'

const methods = methodsOf(client)
const here = methods.filter(({ request }) => isRoute(request.pathname))
const endpoints = seam.SeamEndpoints.fromApiKey(setting.apiKey, { endpoint: setting.endpoint, isUndocumentedApiEnabled: true })
const byPath = new Map(methodsOf(endpoints).map((endpoint) => [endpoint.name, endpoint]))

describe('methods', () => {
  for (const { name, method, request } of here) {
    it(`${name}: ${request.pathname}`, async () => {
      const step = steps[request.pathname]
      ok(step, `no step for ${request.pathname}`)
      let called = 0
      await step(async (...parameters) => {
        called++
        const answer = await method(...parameters)
        if (request.responseKey === undefined) equal(answer, undefined)
        else notEqual(answer ?? undefined, undefined, `the response has no ${request.responseKey}`)
        return answer
      })
      ok(called > 0, 'its step does not call it')
    })
  }

  it('are the same by their paths', () => {
    for (const { request } of here) {
      const endpoint = byPath.get(request.pathname)?.request
      ok(endpoint, request.pathname)
      deepEqual([endpoint.method, endpoint.responseKey], [request.method, request.responseKey])
    }
  })

  it('and steps belong together', () => {
    ok(here.length > 40, `${here.length} of its ${methods.length} methods have a route`)
    deepEqual(Object.keys(steps).filter((path) => !isRoute(path)), [], 'steps without a route')
  })
})

const walked = new Set(here.map(({ request }) => request.pathname))
console.log(`figures: ${JSON.stringify({
  methods: methods.length,
  walked: here.length,
  routes: Object.keys(contract.paths).length,
  notAsked: Object.keys(contract.paths).filter((path) => !walked.has(path)),
})}`)
