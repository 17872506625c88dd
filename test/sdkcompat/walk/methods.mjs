// The methods of a client, found by reflection.

const notRoutes = new Set(['constructor', 'createPaginator', 'updateClientSessionToken'])

// methodsOf lists the methods of a client and of the namespaces below it: {name, method, request}, where request is one
// that it created without sending it.
export function methodsOf(client, above = '') {
  const found = []
  for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(client)))) {
    if (notRoutes.has(key)) continue
    const name = above + key
    // The second class of clients has a getter for each path, which returns the method. It needs no namespaces.
    const value = property.get ? client[key] : property.value
    if (typeof value === 'function') {
      const method = value.bind(client)
      found.push({ name, method, request: method({}) })
    } else {
      found.push(...methodsOf(value, `${name}.`))
    }
  }
  return found
}
