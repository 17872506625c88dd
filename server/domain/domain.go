// Package domain is the vocabulary that all packages of the domain share: identifiers, pages, errors, the principal of a
// request, names, metadata and problems. It holds no rules about any one kind of resource, and knows no database,
// HTTP or vendor.
package domain
