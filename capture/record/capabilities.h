/* capabilities.h - capabilities of this process: what there is, and giving up what is no longer needed. */
#ifndef CAPTURE_RECORD_CAPABILITIES_H
#define CAPTURE_RECORD_CAPABILITIES_H

#include <stdbool.h>

bool hw_capabilities_have(unsigned capability); /* effective; linux/capability.h's number */
/* Keeps only reading of other processes' files and memory: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE; the
 * others cannot be had again, but for CAP_DAC_OVERRIDE (not in effect until hw_capabilities_output()). False: the kernel refused. */
bool hw_capabilities_drop(void);
/* At the end, to give the output its name in a folder that root itself could not write to without CAP_DAC_OVERRIDE. */
void hw_capabilities_output(void);

#endif
