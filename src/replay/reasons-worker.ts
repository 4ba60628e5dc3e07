import type { ReasonsAnswer, ReasonsQuestion } from '../read-models/reasons.js';
import { answerFromHistory } from './answer-from-history.js';
import { ReasonsTelling } from './tell-reasons.js';

/** The thread that explains past decisions. */
answerFromHistory<ReasonsQuestion, ReasonsAnswer>((question, registry) => new ReasonsTelling(question, registry));
