package domain

// Action types of the API.
const (
	LockDoor                  = "LOCK_DOOR"
	UnlockDoor                = "UNLOCK_DOOR"
	ConfigureAutoLock         = "CONFIGURE_AUTO_LOCK"
	SimulateKeypadCodeEntry   = "SIMULATE_KEYPAD_CODE_ENTRY"
	SimulateManualLock        = "SIMULATE_MANUAL_LOCK_VIA_KEYPAD"
	CreateAccessCode          = "CREATE_ACCESS_CODE"
	UpdateAccessCode          = "UPDATE_ACCESS_CODE"
	DeleteAccessCode          = "DELETE_ACCESS_CODE"
	ConvertAccessCode         = "CONVERT_ACCESS_CODE_TO_MANAGED"
	DeleteUnmanagedAccessCode = "DELETE_UNMANAGED_ACCESS_CODE"
	ResetSandboxWorkspace     = "RESET_SANDBOX_WORKSPACE"
	CreateNoiseThreshold      = "CREATE_NOISE_THRESHOLD"
	UpdateNoiseThreshold      = "UPDATE_NOISE_THRESHOLD"
	DeleteNoiseThreshold      = "DELETE_NOISE_THRESHOLD"
	SetHVACMode               = "SET_HVAC_MODE"
	SetFanMode                = "SET_FAN_MODE"
	ActivateClimatePreset     = "ACTIVATE_CLIMATE_PRESET"
	PushThermostatPrograms    = "PUSH_THERMOSTAT_PROGRAMS"
)
