package tedee

import _ "embed" // for Contract

// Contract is contract.yaml, for tests: the part of Tedee's API that the adapter uses, with the source of each field.
//
//go:embed contract.yaml
var Contract []byte
