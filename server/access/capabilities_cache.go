package access

import (
	"encoding/json"
	"sync"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// known holds capabilities by the JSON they were read from: a lock is listed many times for each time that
// its capabilities change, and locks of one model have the same. What it returns is shared and not to be
// changed.
var known = capabilitiesCache{byJSON: map[string]Capabilities{}}

type capabilitiesCache struct {
	mu     sync.RWMutex
	byJSON map[string]Capabilities
}

const capabilitiesKept = 1024

func (k *capabilitiesCache) read(raw []byte) Capabilities {
	k.mu.RLock()
	c, ok := k.byJSON[string(raw)]
	k.mu.RUnlock()
	if ok {
		return c
	}
	return k.learn(raw)
}

func (k *capabilitiesCache) learn(raw []byte) (c Capabilities) {
	_ = json.Unmarshal(raw, &c) // written by this package
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.byJSON) >= capabilitiesKept {
		clear(k.byJSON)
	}
	k.byJSON[string(raw)] = c
	return c
}

func capabilities(r dbsqlc.Device) Capabilities {
	return toCapabilities(r.Capabilities, r.ReportedCodeLengths)
}

// toCapabilities are those that an adapter has found, with what is reported to be otherwise.
func toCapabilities(found []byte, reportedLengths []int32) Capabilities {
	caps := known.read(found)
	if reportedLengths != nil {
		caps.CodeLengths = nil
		for _, n := range reportedLengths {
			caps.CodeLengths = append(caps.CodeLengths, int(n))
		}
	}
	return caps
}

// foundCapabilities are those that its adapter has found out, whatever else is known.
func foundCapabilities(r dbsqlc.Device) Capabilities { return known.read(r.Capabilities) }
