// Prints the published description as JSON in the form of ours: each path has its POST, whose x-methods are the other
// methods. It omits the texts for people, which are most of it.
const left = (keyword) => keyword === 'description' || keyword === 'default' || keyword === 'discriminator' || keyword.startsWith('x-')

const bare = (schema) => {
  if (Array.isArray(schema)) return schema.map(bare)
  if (schema === null || typeof schema !== 'object') return schema
  const kept = Object.entries(schema).filter(([keyword, value]) => !left(keyword) && !(keyword === 'required' && value.length === 0))
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, keyword === 'properties' ? each(value, bare) : keyword === 'enum' ? value : bare(value)]))
}

const each = (object, change) => Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]))

const json = (schema) => ({ content: { 'application/json': { schema } } })

const path = (item) => ({
  post: {
    'x-methods': Object.keys(item).map((method) => method.toUpperCase()).filter((method) => method !== 'POST'),
    'x-response-key': item.post['x-response-key'],
    security: item.post.security,
    requestBody: json(bare(item.post.requestBody?.content['application/json'].schema ?? { type: 'object' })),
    responses: { 200: { description: '', ...json(bare(item.post.responses['200'].content?.['application/json'].schema ?? {})) } },
  },
})

import(process.argv[2]).then(({ default: { info, paths, components } }) => {
  console.log(JSON.stringify({ openapi: '3.0.0', info, paths: each(paths, path), components: { schemas: each(components.schemas, bare), securitySchemes: components.securitySchemes } }))
})
