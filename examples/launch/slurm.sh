#!/bin/bash
# Training on two machines of a Slurm cluster, a rank for each GPU: sbatch examples/launch/slurm.sh task=ant
#
# The job is queued again when it is preempted, when its time is over, and when a machine or a rank dies. It then
# continues from its last checkpoint. The machines share the folder in which sbatch is called, and have gpurobot
# in PATH.
#SBATCH --job-name=gpurobot
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=gpurobot-%j.txt
set -uo pipefail

MOST_RESTARTS=20 # then a rank that dies ends the job

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
WARP_CACHE_PATH=${TMPDIR:-/tmp}/gpurobot-kernels-$UID # on each machine: kernels fit its processor
export MASTER_ADDR MASTER_PORT WARP_CACHE_PATH

# scancel signals this script too; the end of the time and of a preemption's grace signal the ranks alone.
canceled=false
trap 'canceled=true' TERM

# Each task of the step is a rank; these are the variables that torchrun would set.
# shellcheck disable=SC2016
srun --kill-on-bad-exit=0 bash -c '
  export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS
  export LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=$((SLURM_NTASKS / SLURM_NNODES))
  exec gpurobot train run_dir="runs/slurm-$SLURM_JOB_ID" resume=auto "$@"' rank "$@"
status=$?

# Status 0: a limit is reached. 2: a mistake, which would be made again. 143: the ranks have saved and ended.
restarts=${SLURM_RESTART_COUNT:-0}
if [[ $canceled == false && ($status == 143 || ($status != [02] && $restarts -lt $MOST_RESTARTS)) ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
