package device

import (
	"encoding/json"
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// capabilitiesByJSON caches capabilities by their JSON. Devices are listed far more often than their
// capabilities change, and devices of one model have the same. Returned values are shared and must not be
// changed.
var capabilitiesByJSON = capabilitiesCache{byJSON: map[string]capability.Set{}}

type capabilitiesCache struct {
	mu     sync.RWMutex
	byJSON map[string]capability.Set
}

const capabilitiesKept = 1024

func (k *capabilitiesCache) read(raw []byte) capability.Set {
	k.mu.RLock()
	c, ok := k.byJSON[string(raw)]
	k.mu.RUnlock()
	if ok {
		return c
	}
	return k.decodeAndStore(raw)
}

func (k *capabilitiesCache) decodeAndStore(raw []byte) (c capability.Set) {
	_ = json.Unmarshal(raw, &c) // written by this package
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.byJSON) >= capabilitiesKept {
		clear(k.byJSON)
	}
	k.byJSON[string(raw)] = c
	return c
}

func capabilities(r dbsqlc.Device) capability.Set {
	return toCapabilities(r.Capabilities, r.ReportedCodeLengths)
}

// toCapabilities returns the capabilities that an adapter found, with the reported code lengths in place of its
// own.
func toCapabilities(found []byte, reportedLengths []int32) capability.Set {
	caps := capabilitiesByJSON.read(found)
	if reportedLengths != nil {
		caps.CodeLengths = nil
		for _, n := range reportedLengths {
			caps.CodeLengths = append(caps.CodeLengths, int(n))
		}
	}
	return caps
}

// foundCapabilities returns the capabilities that the adapter found, without reported corrections.
func foundCapabilities(r dbsqlc.Device) capability.Set {
	return capabilitiesByJSON.read(r.Capabilities)
}
