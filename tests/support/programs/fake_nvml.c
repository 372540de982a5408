/* Stands in for NVIDIA's management library in tests: two GPUs, the second one cut into MIG devices and in use.
   FAKE_NVML=hang never answers, FAKE_NVML=broken has a driver that does not work, FAKE_NVML=sick a GPU. FAKE_NVML_PID computes on GPU 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
typedef struct {
  int place, mig;
} Device;
typedef struct {
  unsigned long long total, free, used;
} Memory;
typedef struct {
  unsigned gpu, memory;
} Utilization;
typedef struct {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
} Process;

static Device devices[] = {{0, -1}, {1, -1}, {1, 0}, {1, 2}};

static int is_asked_to(const char *what) {
  const char *mode = getenv("FAKE_NVML");
  return mode != NULL && strcmp(mode, what) == 0;
}

int nvmlInit_v2(void) {
  while (is_asked_to("hang")) pause();
  return is_asked_to("broken") ? UNINITIALIZED : SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 2;
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned place, Device **device) {
  *device = &devices[place];
  return SUCCESS;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Device **device) {
  unsigned domain = 0, place = 0;
  if (sscanf(bus, "%x:%x:00.0", &domain, &place) != 2 || place > 1) return NOT_FOUND;
  *device = &devices[place];
  return SUCCESS;
}
/* GPU 0 has no sensors. */
int nvmlDeviceGetUtilizationRates(Device *device, Utilization *use) {
  use->gpu = 97;
  use->memory = 40;
  return device->place == 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *celsius) {
  *celsius = 61;
  return device->place == 0 || sensor != 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) {
  *milliwatts = 412500;
  return device->place == 0 ? NOT_SUPPORTED : SUCCESS;
}
int nvmlDeviceGetUUID(Device *device, char *text, unsigned size) {
  if (device->mig < 0)
    snprintf(text, size, "GPU-%d0000000-aaaa-bbbb-cccc-000000000000", device->place);
  else
    snprintf(text, size, "MIG-%d%d000000-aaaa-bbbb-cccc-000000000000", device->place, device->mig);
  return SUCCESS;
}
int nvmlDeviceGetName(Device *device, char *text, unsigned size) {
  snprintf(text, size, "Fake GPU %d", device->place);
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
  memory->total = 80ull << 30;
  memory->used = device->place == 0 ? 300ull << 20 : 40ull << 30;
  memory->free = memory->total - memory->used;
  return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *processes) {
  const char *pid = getenv("FAKE_NVML_PID");
  const int busy = device->place == 1 && pid != NULL && *count > 0;
  *count = busy ? 1 : 0;
  if (busy) processes[0].pid = (unsigned)atoi(pid);
  return SUCCESS;
}
/* GPU 1 is sick. */
int nvmlDeviceGetTotalEccErrors(Device *device, unsigned type, unsigned counter, unsigned long long *errors) {
  *errors = device->place == 1 && type == 1 && counter == 0 && is_asked_to("sick") ? 3 : 0;
  return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *reasons) {
  *reasons = device->place == 1 && is_asked_to("sick") ? 0x41 : 1;
  return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *count) {
  *count = device->place == 1 ? 3 : 0;
  return SUCCESS;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned place, Device **mig) {
  for (unsigned i = 0; i < sizeof devices / sizeof devices[0]; ++i)
    if (devices[i].place == device->place && devices[i].mig == (int)place) {
      *mig = &devices[i];
      return SUCCESS;
    }
  return NOT_FOUND;
}
