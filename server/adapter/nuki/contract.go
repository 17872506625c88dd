package nuki

import _ "embed"

// Contract is contract.yaml, by which tests judge both sides.
//
//go:embed contract.yaml
var Contract []byte
