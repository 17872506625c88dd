package app

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/keyrotation"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/sandbox"
)

// CodeOnLock is a code in the memory of a simulated lock.
type CodeOnLock struct {
	// PIN is the digits of the code.
	PIN string `json:"code"`
	// Name is the name of the code on the lock.
	Name string `json:"name"`
}

// LockMemory returns the codes in the memory of a simulated lock. It asks the simulated cloud of the server at
// endpoint. It returns an error if the device is not simulated or the server does not answer.
func (a *Admin) LockMemory(ctx context.Context, endpoint, deviceID string) ([]CodeOnLock, error) {
	d, account, err := a.simulatedDevice(ctx, deviceID)
	if err != nil {
		return nil, err
	}
	key, err := a.Access.ServerKeys.ServerKey(ctx, keyrotation.SandboxSeed)
	if err != nil {
		return nil, err
	}
	c, err := simulated(account)
	if err != nil {
		return nil, err
	}
	token := sandbox.Tokens(binary.BigEndian.Uint64(key)).Account(c.Key)
	req, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		cloudAt(endpoint)+"/sandbox/locks/"+d.Ref+"/memory",
		nil,
	)
	if err != nil {
		return nil, fmt.Errorf("ask the simulated cloud: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the simulated cloud: %w; is the server running at %s?", err, endpoint)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf(
			"ask the simulated cloud: %s answers %s, which suggests another server with other data: set --endpoint to the "+
				"URL that the server on this data logs when it is ready",
			endpoint,
			res.Status,
		)
	}
	var out struct {
		Codes []CodeOnLock `json:"access_codes"`
	}
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the response of the simulated cloud: %w", err)
	}
	return out.Codes, nil
}

func (a *Admin) simulatedDevice(ctx context.Context, deviceID string) (device.Device, account.Account, error) {
	accounts, err := a.Access.Accounts.ListAccounts(ctx, account.SandboxAdapter)
	if err != nil {
		return device.Device{}, account.Account{}, err
	}
	for _, account := range accounts {
		d, err := a.Access.Devices.GetDevice(ctx, domain.Principal{WorkspaceID: account.WorkspaceID}, deviceID, "")
		if err == nil && d.AccountID == account.ID {
			return d, account, nil
		}
	}
	return device.Device{}, account.Account{}, fmt.Errorf("%q is not the device_id of a simulated lock", deviceID)
}
